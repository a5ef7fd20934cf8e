package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/outlook"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// ExplainJob says why a job is as it is: of one that waits, everything that must clear.
func (l Jobs) ExplainJob(ctx context.Context, actor ledger.Actor, id string) (
	e ledger.Explanation, err error) {
	var j job.Job
	defer func() { explainClass(&e, j, l.Config.Scheduling.Now().Of("").Priorities) }()
	var queued []ledger.QueuedJob
	var room *learned.Room
	var unserved *ledger.Blocker
	var silent []string
	var hot []node.Node
	var reserved []reservation.Reservation
	var around queue
	var awaited []job.Job
	var noWorker *ledger.Blocker
	var company ledger.Explanation // of which the blockers count
	err = l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		if j, err = r.Job(actor.Scope(), id); err != nil {
			return err
		}
		e = ledger.Explanation{At: r.Now(), Kind: "job", Subject: j.ID, State: string(j.State()), Reason: j.Reason,
			PoolID: j.PoolID}
		if e.Since, err = sinceOf(r, j); err != nil {
			return err
		}
		if j.State() == job.Pending {
			if queued, err = l.QueueOf(r, j.PoolID); err == nil {
				room, err = roomInWay(r, j)
			}
			if err == nil {
				hot, err = hotNodes(r, j)
			}
			if err == nil {
				reserved, err = reservedAhead(r, j)
			}
			if err == nil {
				around, err = readAround(r, j)
			}
			if err == nil {
				awaited, err = awaitedFor(l, r, j)
			}
			if err == nil {
				err = blockedByCompany(r, around.pools[j.PoolID], &company, j)
			}
			if err == nil {
				err = blockedByDivision(r, around.pools[j.PoolID], &company, j)
			}
		}
		if err == nil && j.State() == job.Scheduled {
			unserved, err = unservedBlocker(r, actor, j)
		}
		if err == nil {
			noWorker, err = l.missingWorker(r, actor, j)
		}
		if err == nil && j.State() == job.Running {
			silent, err = silentUnder(r, j, job.RankRunning)
		}
		if err == nil && j.Awaited.Is() {
			j, err = stillAwaited(r, j)
		}
		if e.Summary = summaryOf(j, r.Now()); err == nil {
			err = tellUnheard(r, &e, j)
		}
		if err == nil {
			err = tellClaimed(r, &e, j)
		}
		return err
	})
	if err != nil {
		return e, fmt.Errorf("reading job %s: %w", id, err)
	}
	explainAwaited(&e, j)
	if room != nil && room.For == j.ID {
		explainRoom(&e, *room)
	}
	if j.State() == job.Held {
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: "held", Message: "It is held until somebody releases it.",
			Fix: "forewarm jobs release " + j.ID})
	}
	if unserved != nil {
		e.Blockers = append(e.Blockers, *unserved)
	}
	if len(silent) > 0 {
		e.Blockers = append(e.Blockers, silentDaemon(j, silent))
	}
	if noWorker != nil {
		e.Blockers = append(e.Blockers, *noWorker)
	}
	for i, q := range queued {
		if q.ID == j.ID {
			if room == nil || room.For != j.ID {
				e, err = l.explainWaiting(ctx, actor, e, j, q, queued[:i])
			}
			if err == nil && room != nil && room.For != j.ID && q.Code == ledger.WaitsForGPUs {
				e.Blockers = append(e.Blockers, ledger.Blocker{Code: "preempting",
					Message: "GPUs of the pool are being left for a job that goes before it."})
			}
			if err == nil && q.Code == ledger.WaitsForGPUs {
				blockedByHeat(&e, hot)
				e.Blockers = append(e.Blockers, company.Blockers...)
				blockedByReservations(&e, j, reserved)
				blockedByShortClaim(&e, j, around.pools[j.PoolID], reserved)
				around.blockedBySilence(&e, actor, j)
				blockedByAwaited(&e, j, awaited)
			}
			if noWorker != nil {
				e.Next = nil
			}
			return e, err
		}
	}
	return e, nil
}

// explainClass says that a job's priority is not there any more, and what it counts as.
func explainClass(e *ledger.Explanation, j job.Job, all ledger.Priorities) {
	if e.Subject != "" && !j.Over() && !all.Has(j.Priority) {
		e.Summary += fmt.Sprintf(" Its priority %s is not configured any more: it counts as %s.", j.Priority,
			all.CountsAs(j.Priority))
	}
}

// missingWorker is what it means for a job that waits, for GPUs or for their nodes, that no worker is there; nil: one
// is, or the job waits for nothing that a worker does.
func (l Jobs) missingWorker(r ledger.Reader, actor ledger.Actor, j job.Job) (*ledger.Blocker, error) {
	switch j.State() {
	case job.Pending:
	case job.Scheduled:
		a, err := r.Allocation(actor.Scope(), j.AllocationID)
		if err != nil || a.State() != allocation.Pending {
			return nil, err
		}
	default:
		return nil, nil
	}
	p, err := r.Pool(j.PoolID)
	if err != nil {
		return nil, err
	}
	return outlook.NewWaits(l.Config, r).MissingWorker(actor.Role == ledger.Operator, p.CreatedAt)
}

// explainWaiting names what a job waits for that is not started yet.
func (l Jobs) explainWaiting(ctx context.Context, actor ledger.Actor, e ledger.Explanation, j job.Job,
	q ledger.QueuedJob, before []ledger.QueuedJob) (ledger.Explanation, error) {
	switch q.Code {
	case ledger.WaitsForJob:
		others := "another job"
		if strings.Contains(q.Detail, ", ") {
			others = "other jobs"
		}
		e.Summary = "It waits for " + others + ": " + q.WaitText() + "."
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: q.Code, Message: e.Summary})
		return e, nil
	case ledger.WaitsForArray:
		e.Summary = fmt.Sprintf("Its array runs %d at once, and so many have GPUs or come before it.", j.Array.Limit)
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: q.Code, Message: e.Summary,
			Fix: "forewarm jobs list --array " + j.Array.ID})
		return e, nil
	case ledger.WaitsForNodes:
		e.Summary = "It waits for nodes on which it may run: " + q.Detail + "."
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: q.Code, Message: e.Summary,
			Fix: "submit it with another --constraint, --tolerate or --exclude, or ask an operator, who has forewarm pools " +
				"label and taint, and nodes label and taint"})
		return e, nil
	case ledger.WaitsForDaemon:
		e.Summary = "It waits for a daemon that starts it: " + q.Detail + "."
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: q.Code, Message: e.Summary, Fix: ledger.FixSilence(actor)})
		return e, nil
	case ledger.WaitsForTime:
		e.Summary = "It does not start before its time: " + q.WaitText() + "."
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: q.Code, Message: e.Summary,
			ClearsAt: &ledger.Band{P10: j.NotBefore, P50: j.NotBefore, P90: j.NotBefore}})
		return e, nil
	}
	e.Summary = fmt.Sprintf("It waits for GPUs, as number %d of its pool's queue.", q.Position)
	if q.Code == ledger.WaitsForQuota {
		e.Summary = fmt.Sprintf("It waits, as number %d of its pool's queue: %s.", q.Position, q.Detail)
	}
	explainStart(&e, q)
	if len(before) > 0 {
		blocker := ledger.Blocker{Code: "queue", Message: phrase.Count(len(before), "job") + " would start before it now.",
			Fix: "forewarm queue", Evidence: slices.Clone(q.Turn)}
		if before[0].OrganizationID == j.OrganizationID { // others' are nobody's business
			blocker.Evidence = append(blocker.Evidence, "the first is "+before[0].ID)
		}
		e.Blockers = append(e.Blockers, blocker)
	}
	err := tryJob(ctx, l, j)
	if refused, ok := errors.AsType[*ledger.RefusedError](err); ok {
		e.Refused, err = refused, nil
		if e.Take = takeOffer(&e, j); e.Take == "" { // a job takes its turn, and not what somebody else could book
			bare := *refused
			bare.Decision.Offers = nil
			e.Refused = &bare
		}
	}
	if errors.Is(err, ledger.ErrRecovering) {
		e.Next, err = nil, nil
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: ledger.CodeRecovering,
			Message: "Its pool only reconciles after a database was restored: nothing starts before an operator confirms."})
	}
	if errors.Is(err, errServed) {
		e.Next, err = []ledger.Step{{Code: "start", At: e.At,
			Message: "there are GPUs for it; it starts when its turn comes"}}, nil
	}
	return e, err
}

// explainStart says when a job is predicted to start, or why that cannot be said.
func explainStart(e *ledger.Explanation, q ledger.QueuedJob) {
	if q.Start == nil {
		if q.Unpredicted != "" {
			why := strings.TrimSuffix(q.Unpredicted, seeExplanation(q.ID)) // which this is
			e.Summary += " When it starts cannot be said: " + why + "."
		}
		return
	}
	e.Next = append(e.Next, ledger.Step{Code: "predicted_start", At: q.Start.P50,
		Message: fmt.Sprintf("it is predicted to start, between %s and %s, by %s", ledger.FormatTimeSeen(q.Start.P10, e.At),
			ledger.FormatTimeSeen(q.Start.P90, e.At), q.Start.Basis)})
}

// errServed ends a trial in which a job got its GPUs, so that nothing of it stays.
var errServed = errors.New("it would get its GPUs")

// tryJob asks what admission would say to a job now, and changes nothing.
func tryJob(ctx context.Context, l Jobs, j job.Job) error {
	actor, err := newSubmitters(ctx, l).of(j)
	if err != nil {
		return err
	}
	return l.inPoolOf(ctx, actor, j.PoolID, func(tx *txn.Tx, p *txn.PoolTx) error {
		next, err := j.Apply(job.Schedule, "", tx.Now())
		if err != nil {
			return err
		}
		txn.PutJob(tx, next)
		if _, err := booking.ServeJob(tx, p, next, booking.PartClaim{}); err != nil {
			return err
		}
		return errServed
	})
}

// summaryOf is one sentence on a job that does not wait.
func summaryOf(j job.Job, now time.Time) string {
	if j.Ending.Is() {
		return endingSummary(j)
	}
	switch j.State() {
	case job.Held:
		return "It is held."
	case job.Scheduled:
		return "It has its place, and is started as soon as its nodes are up and their daemons have been told: forewarm " +
			"explain " + j.AllocationID
	case job.Running:
		return runningSummary(j, now)
	case job.Completed:
		return "It has completed."
	case job.Cancelled:
		return "It was cancelled."
	case job.Failed:
		return "It has failed: " + cmp.Or(describeEnd(j.End), j.Reason) + "."
	}
	return ""
}

// runningSummary is one sentence on a job that runs, or whose time is over.
func runningSummary(j job.Job, now time.Time) string {
	if limit := j.StartedAt.Add(j.MaxRuntime); now.After(limit) {
		return fmt.Sprintf("Its time of %s was over at %s: it was told TERM, and gets KILL %s after that.",
			phrase.Length(j.MaxRuntime), ledger.FormatTimeSeen(limit, now), phrase.Length(j.Grace))
	}
	return fmt.Sprintf("It runs, and ends by itself or is told TERM %s after its start, and gets KILL %s after that.",
		phrase.Length(j.MaxRuntime), phrase.Length(j.Grace))
}

// endingSummary is one sentence on a job whose attempt was told to end.
func endingSummary(j job.Job) string {
	e := j.Ending
	told := "TERM"
	if e.Lead > 0 {
		told = j.Checkpoint.Signal + ", and TERM after " + phrase.Length(e.Lead)
	}
	text := fmt.Sprintf("It is ending: it was told %s, and gets KILL %s after TERM. Then it %s.", told,
		phrase.Length(e.Grace), thenText(e))
	if e.Then == job.ThenPreempted {
		text = "It leaves its GPUs for " + leftFor(e) + ". " + text
	}
	return text
}

// leftFor names for whom a job leaves, if that is not another organization's.
func leftFor(e job.Ending) string {
	if e.For == "" {
		return "a job that goes before it"
	}
	return "job " + e.For + ", which goes before it"
}

// roomInWay is what others leave for the job, or else for another one of its pool; nil: nothing.
func roomInWay(r ledger.Reader, j job.Job) (*learned.Room, error) {
	p, err := r.Pool(j.PoolID)
	if err != nil || len(p.Rooms) == 0 {
		return nil, err
	}
	for _, room := range p.Rooms {
		if room.For == j.ID {
			return &room, nil
		}
	}
	return &p.Rooms[0], nil
}

// explainRoom says that others leave for a job, and until when what they leave is kept for it.
func explainRoom(e *ledger.Explanation, room learned.Room) {
	e.Summary = leaveText(len(room.From)) + " for it: it starts on " +
		"those GPUs once they are free and their nodes are clean."
	e.Next = append(e.Next, ledger.Step{Code: "start", At: room.GiveUp,
		Message: "what they leave is kept for it until then; if it has not begun, others may have it"})
}
