package problem

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
)

// NotFound is what is said of something that is not there when it is not known
// what was asked for.
const NotFound = "It does not exist, or this key may not see it."

// From translates any error. The second result is false when the caller is told
// less than the error says, so that it must be logged.
func From(err error) (*Problem, bool) {
	var (
		p       *Problem
		refused *ledger.RefusedError
		invalid *ledger.InvalidError
		state   *ledger.StateError
		stale   *ledger.PlanStaleError
		risk    *ledger.PromisesAtRiskError
		batch   *ledger.BatchError
		many    *ledger.TooManyError
		share   *ledger.ShareTakenError
		inUse   *ledger.InUseError
		full    *ledger.StorageFullError
		holder  *ledger.NotHolderError
		taken   *ledger.TakenError
		watched *ledger.ObservedPoolError
		shared  *ledger.SharedNodeError
		queue   *ledger.QueueFullError
		rate    *ledger.SubmissionRateError
		high    *ledger.PriorityError
		daemon  *ledger.DaemonRefusedError
	)
	switch {
	case errors.As(err, &p):
		return p, true
	case errors.As(err, &stale):
		return fromStale(stale), true
	case errors.As(err, &refused):
		return fromRefused(refused), true
	case errors.As(err, &invalid):
		return fromInvalid(invalid), true
	case errors.As(err, &share):
		return fromShare(share), true
	case errors.As(err, &risk):
		return fromRisk(risk), true
	case errors.As(err, &batch):
		return fromBatch(batch), true
	case errors.As(err, &many):
		return fromTooMany(many), true
	case errors.As(err, &inUse):
		return fromInUse(inUse), true
	case errors.As(err, &state):
		return fromState(state), true
	case errors.As(err, &watched):
		return New(contract.CodeObservedPool, strings.ToUpper(watched.Error()[:1])+watched.Error()[1:]+".").
			Fix("Submit the job to the cluster, as without Forewarm; reserve ahead here to have nodes warm for it", ""), true
	case errors.As(err, &shared):
		return New(contract.CodeStateConflict, strings.ToUpper(shared.Error()[:1])+shared.Error()[1:]+".").
			Fix("Try again when the other's work is over, or take whole nodes", "").
			Fix("Have an operator see to the node's isolation, or to the pool's", "forewarm pools edit --help"), true
	case errors.As(err, &queue) && queue.IsTooMany():
		p := New(contract.CodeQueueFull, strings.ToUpper(queue.Error()[:1])+queue.Error()[1:]+".").
			Fix(fmt.Sprintf("Submit at most %d at once, and the rest when those are over", queue.Most), "")
		p.Retryable = false
		return p, true
	case errors.As(err, &queue):
		return New(contract.CodeQueueFull, strings.ToUpper(queue.Error()[:1])+queue.Error()[1:]+".").
			Fix("Try again when some have ended, or cancel what is not needed", "forewarm queue"), true
	case errors.As(err, &rate):
		return fromRate(rate), true
	case errors.As(err, &high):
		return New(contract.CodePermissionDenied, strings.ToUpper(high.Error()[:1])+high.Error()[1:]+".").
			Fix("Submit it with the priority "+high.Instead+", or ask somebody who may use this one", ""), true
	case errors.As(err, &daemon):
		return fromDaemon(daemon), true
	case errors.As(err, &holder):
		return New(contract.CodePermissionDenied, holder.Error()+".").
			Fix("Ask the holder of the lease to extend it, or allocate with this key", ""), true
	case errors.As(err, &taken):
		return fromTaken(taken), true
	case errors.As(err, &full):
		return fromFull(full), false
	}
	if p := fromStore(err); p != nil {
		return p, false
	}
	return fromSentinel(err)
}

// fromState says what else can be done.
func fromState(e *ledger.StateError) *Problem {
	p := New(contract.CodeStateConflict, e.Error())
	if e.Fix != "" {
		p = p.Fix(e.Fix, e.Command)
	}
	return p
}

// fromTaken names what has the name.
func fromTaken(e *ledger.TakenError) *Problem {
	return New(contract.CodeNameTaken, strings.ToUpper(string(e.Noun[:1]))+e.Error()[1:]+".").
		Fix("Choose another name", "").
		Fix("Look at the other, and delete it if it is not needed", fmt.Sprintf("forewarm %ss show %s", e.Noun, e.ID))
}

func fromSentinel(err error) (*Problem, bool) {
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return New(contract.CodeNotFound, NotFound), true
	case errors.Is(err, ledger.ErrDenied):
		return New(contract.CodePermissionDenied, "The key's role or organization does not allow this.").
			Fix("Ask an admin of the organization, or an operator, for a key with these rights", ""), true
	case errors.Is(err, ledger.ErrLastOperator):
		return New(contract.CodeStateConflict,
			"No permanent operator's key would be left, and nobody could get back in.").
			Fix("First make an operator's key that never expires, and adopt it: forewarm key create NAME --role "+
				"operator --expires never", ""), true
	case errors.Is(err, ledger.ErrTaken):
		return New(contract.CodeNameTaken, "Something of that name exists.").Fix("Choose another name", ""), true
	case errors.Is(err, ledger.ErrRecovering):
		return New(contract.CodeRecovering,
			"Nothing is created, ended, promised or handed out until an operator has confirmed what was found at the "+
				"provider.").
			Fix("Operators: look at what was found, and confirm it", "forewarm recovery show").
			Fix("Others: wait, or ask an operator", ""), true
	case errors.Is(err, ledger.ErrPlanExpired):
		return New(contract.CodePlanExpired, "A plan is valid for a few minutes.").Fix("Make the plan again", ""), true
	case errors.Is(err, ledger.ErrConflict):
		return New(contract.CodeETagMismatch,
				"If-Match names an older version; nothing was done.").
				Request("Read it again and repeat with the new ETag"),
			true
	case errors.Is(err, ledger.ErrKeyReused):
		return New(contract.CodeIdempotencyKeyReused, "This Idempotency-Key was used before with another body.").
			Field(contract.FieldError{Pointer: contract.HeaderIdempotencyKey, Code: "reused",
				Message: "was used before for another request"}).
			Request("Send a new Idempotency-Key"), true
	case errors.Is(err, ledger.ErrKeyExpired):
		return New(contract.CodeIdempotencyKeyExpired,
			fmt.Sprintf("Answers are kept for %d days, and this Idempotency-Key is older: the server can no longer tell "+
				"whether its request was carried out.", ledger.KeepAnswers/(24*time.Hour))).
			Field(contract.FieldError{Pointer: contract.HeaderIdempotencyKey, Code: "expired",
				Message: "must be made when the request is"}).
			Request("Check whether the request took effect; if it did not, send it with a new Idempotency-Key"), true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return New(contract.CodeTimeout, "The request was abandoned."), false
	}
	return New(contract.CodeInternal, "The failure is in the server's log under this request id."), false
}

// fromStale tells what stands in a plan's way now, with all blockers and offers
// when the request would be refused.
func fromStale(e *ledger.PlanStaleError) *Problem {
	p := New(contract.CodePlanStale,
		e.Error()+"; nothing was changed").Fix("Make the plan again, and look at what it shows", "")
	var refused *ledger.RefusedError
	if errors.As(e.Err, &refused) {
		p.Blockers, p.Offers = Blockers(refused), Offers(refused)
	}
	return p
}

// refusal is a blocker's problem and its way out.
type refusal struct {
	blocker admission.Code
	problem string
	fix     string
}

// refusals gives each blocker its problem, the ones that no waiting, size or
// money changes first: the first that is there names the whole refusal.
var refusals = []refusal{
	{admission.WindowInPast, contract.CodeWindowInPast, "Choose a start in the future"},
	{admission.NoMatchingHardware, contract.CodeNoMatchingHardware, "Ask for fewer GPUs, or another pool"},
	{admission.ClaimTooEarly, contract.CodeClaimTooEarly,
		"Claim it when its window begins, or allocate GPUs separately now"},
	{admission.ClaimTooLong, contract.CodeClaimTooLong, "Claim it for as long as it is booked, and extend the lease"},
	{admission.WindowTooLong, contract.CodeWindowTooLong, shorten},
	{admission.KeyCapExceeded, contract.CodeKeyCapExceeded, "Ask an admin for a key with larger caps"},
	{admission.QuotaExceeded, contract.CodeQuotaExceeded, "Release something, or ask an operator for a larger quota"},
	{admission.CohortExhausted, contract.CodeQuotaExceeded,
		"Wait until other members of the cohort use less, or ask an operator for a larger quota"},
	{admission.UserCapExceeded, contract.CodeUserCapExceeded, "Ask an admin for larger caps"},
	{admission.GPUHoursExceeded, contract.CodeQuotaExceeded,
		"Wait for the next period, or ask an operator for a larger quota"},
	{admission.SpendingExceeded, contract.CodeSpendingExceeded,
		"Wait for the next period, or ask an operator for a larger money budget"},
	{admission.BudgetExceeded, contract.CodeBudgetExceeded,
		"Wait for the next UTC day, or ask an operator for a larger speculation budget"},
	{admission.PrewarmPaused, contract.CodePrewarmPaused,
		"Ask for a guaranteed reservation, or wait until pre-warming resumes"},
	{admission.LeadTimeTooShort, contract.CodeLeadTimeTooShort, "Choose a later end, or ask for an allocation now"},
	{admission.WorkloadShareExceeded, contract.CodeCapacityExhausted,
		takeOffer + ", or wait until the workload uses less of the pool"},
	{admission.CapacityExhausted, contract.CodeCapacityExhausted, takeOffer},
}

// takeOffer is what to do about a full pool, and withoutOffers where nothing is
// offered.
const (
	takeOffer     = "Take one of the offers"
	withoutOffers = "Wait until something ends, or ask for fewer GPUs or a shorter time"
	shorten       = "Ask for a shorter time and extend it later"
)

// wayOut is the fix of a refusal, which names offers only if there are any.
func (r refusal) wayOut(e *ledger.RefusedError) string {
	switch {
	case strings.HasPrefix(r.fix, takeOffer) && len(e.Decision.Offers) == 0:
		return withoutOffers
	case r.blocker == admission.NoMatchingHardware:
		return fitHardware(e, r.fix)
	case r.fix == shorten && e.What == ledger.RefusedExtension:
		return "Extend it by a shorter time, and again later"
	}
	return r.fix
}

// fitHardware says what of a shape is too much for a pool, of which there may be enough GPUs.
func fitHardware(e *ledger.RefusedError, usual string) string {
	for _, r := range e.Decision.Reasons {
		switch {
		case r.Code != admission.NoMatchingHardware || r.Asked > r.Limit:
		case r.Asked <= int64(e.PerNode):
			return "Ask for fewer nodes, with more GPUs on each, or another pool"
		default:
			return "Ask for fewer GPUs on each node, or fewer nodes, or another pool"
		}
	}
	return usual
}

// FixFor says what changes a blocker of the code in a refusal.
func FixFor(code string, e *ledger.RefusedError) (label string, found bool) {
	for _, row := range refusals {
		if string(row.blocker) == code {
			return row.wayOut(e), true
		}
	}
	return "", false
}

func fromRefused(e *ledger.RefusedError) *Problem {
	for _, row := range refusals {
		for _, r := range e.Decision.Reasons {
			if r.Code == row.blocker {
				p := New(row.problem, r.Message+closedNodes(e)+otherPools(e)).Fix(row.wayOut(e), "")
				p.Blockers, p.Offers, p.DecisionID = Blockers(e), Offers(e), e.DecisionID
				if f, ok := blamedField(r.Code, e.What); ok {
					p = p.Field(contract.FieldError{Pointer: jsonPointer(f), Code: string(r.Code), Message: r.Message})
				}
				return p
			}
		}
	}
	return New(contract.CodeCapacityExhausted, e.Error())
}

// otherPools says why the other pools that fit could not serve either.
func otherPools(e *ledger.RefusedError) string {
	var b strings.Builder
	for _, o := range e.Others {
		fmt.Fprintf(&b, "; nor in %s: %s", o.Pool, o.Message)
	}
	return b.String()
}

// closedNodes says how many nodes of the pool take no new work, so that what is free there counts for nobody. Which
// these are is told to those who may see them.
func closedNodes(e *ledger.RefusedError) string {
	var b strings.Builder
	for _, c := range e.Closed {
		fmt.Fprintf(&b, "; it has %s, where nothing new starts", phrase.Count(c.Nodes, c.State+" node"))
	}
	return b.String()
}

// fields are what a blocker blames in the request.
var fields = map[admission.Code]string{
	admission.WindowInPast:       "start",
	admission.WindowTooLong:      "end",
	admission.NoMatchingHardware: "gpus",
}

// lengths are the fields that say how long something is asked for, by what is asked for.
var lengths = map[string]string{"allocation": "lease_seconds", ledger.RefusedExtension: "by_seconds",
	"schedule": "duration_seconds", "job": "max_runtime_seconds"}

// blamedField is what a blocker blames in a request.
func blamedField(code admission.Code, what string) (field string, ok bool) {
	if length, is := lengths[what]; is && code == admission.WindowTooLong {
		return length, true
	}
	field, ok = fields[code]
	return field, ok
}

// Blockers lists everything that stands in the way.
func Blockers(e *ledger.RefusedError) []contract.Blocker {
	out := Reasons(e.Decision.Reasons)
	for i := range out {
		if out[i].Code == string(admission.CapacityExhausted) {
			out[i].Message += closedNodes(e)
		}
	}
	return out
}

// Reasons encodes what admission says.
func Reasons(reasons []admission.Reason) []contract.Blocker {
	var out []contract.Blocker
	for _, r := range reasons {
		out = append(out, contract.Blocker{Code: string(r.Code), Message: r.Message, Unit: r.Unit, Limit: r.Limit,
			Asked: r.Asked})
	}
	return out
}

// Offers lists what would be accepted now.
func Offers(e *ledger.RefusedError) []contract.Offer {
	return OfferList(e.Decision.Offers)
}

// OfferList encodes what admission offers.
func OfferList(offers []admission.Offer) []contract.Offer {
	var out []contract.Offer
	for _, o := range offers {
		out = append(out, contract.Offer{PoolID: o.Pool, GPUs: o.Shape.GPUs(), Nodes: o.Shape.Nodes,
			GPUsPerNode: o.Shape.PerNode,
			Start:       o.Window.Start.UTC(), End: o.Window.End.UTC(), Cost: Money(o.Cost),
			ReservationID: o.Reservation})
	}
	return out
}

func fromInvalid(e *ledger.InvalidError) *Problem {
	p := Invalid(e.Field, e.Rule, e.Fix)
	p.Errors[0].Allowed = e.Allowed
	switch e.Field {
	case "timezone":
		return withCode(p, contract.CodeUnknownTimeZone)
	case "rrule":
		return withCode(p, contract.CodeUnsupportedRRule)
	}
	return p
}

// withCode gives p another code of the catalogue and keeps what it says.
func withCode(p *Problem, code string) *Problem {
	q := New(code, p.Detail)
	q.Errors, q.Fixes = p.Errors, p.Fixes
	return q
}

// jsonPointer turns a field such as windows[3].end into the JSON pointer
// /windows/3/end.
func jsonPointer(field string) string {
	return "/" + strings.NewReplacer("].", "/", "[", "/", "]", "", ".", "/").Replace(field)
}

// fromDaemon says why a daemon is refused, and one that another one of its machine follows, that it is so.
func fromDaemon(refused *ledger.DaemonRefusedError) *Problem {
	text := refused.Error()
	p := New(contract.CodeDaemonRefused, strings.ToUpper(text[:1])+text[1:]+".")
	if refused.Reason == ledger.RefusedSuperseded {
		return p.Field(contract.FieldError{Pointer: "/epoch", Code: contract.ErrorSuperseded,
			Message: "must not be earlier than that of another daemon of the machine"}).
			Fix("Stop one of the two", "")
	}
	return p.Fix("Have an operator issue a new join token, and start the daemon with it",
		"forewarm nodes join "+refused.NodeID)
}
