package slurm

import (
	"math"
	"slices"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/coldstart"
	"github.com/forewarm/forewarm/core/money"
)

// shownReport is the report as it is shown. Times are seconds, hours are of whole
// nodes where they are not of GPUs.
type shownReport struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// LearnedFrom is when the history begins that the forecast learned from.
	LearnedFrom time.Time       `json:"learned_from"`
	Source      string          `json:"source"`
	Rows        rowCounts       `json:"rows"`
	Starts      startCounts     `json:"gpu_starts"`
	Policies    []shownPolicy   `json:"policies"`
	Assumed     assumed         `json:"assumed"`
	Price       *contract.Money `json:"price_per_node_hour"`

	hides bool
	all   bool // every keep-alive was asked for
}

// rowCounts say what became of the rows of the history.
type rowCounts struct {
	Read     int    `json:"read"`
	Broken   int    `json:"broken"`
	First    string `json:"first_broken,omitempty"`
	NeverRan int    `json:"never_ran"`
	Running  int    `json:"still_running"`
	Own      int    `json:"own"` // runs of Forewarm's jobs in the period
	Users    int    `json:"users"`
}

// startCounts is what happened.
type startCounts struct {
	All       int        `json:"all"`
	GPUs      int        `json:"gpus"`
	Nodes     int        `json:"nodes"`
	StaysUp   int        `json:"nodes_that_stay_up"`
	BusyHours float64    `json:"busy_node_hours"`
	AtOnce    int        `json:"at_once"`
	Boot      shownWaits `json:"waited_for_boot"`
	Resources shownWaits `json:"waited_for_resources"`
	Limits    shownWaits `json:"waited_for_limits"`
	Priority  shownWaits `json:"waited_for_priority_or_other"`
	Held      shownWaits `json:"held_before_eligible"`
	Untold    shownWaits `json:"waited_too_early_to_tell"`
	Refuted   int        `json:"at_once_on_nodes_inferred_cold"`
	Open      int        `json:"not_counted_may_still_boot"` // in no other number
}

type shownWaits struct {
	Starts   int     `json:"starts"`
	P50      int64   `json:"p50"`
	P90      int64   `json:"p90"`
	Longest  int64   `json:"longest"`
	GPUHours float64 `json:"gpu_hours"`
}

// shownPolicy is what one way would have come to, beside doing nothing.
type shownPolicy struct {
	Policy    string          `json:"policy"`
	Keep      *int64          `json:"suspend_time,omitempty"` // of a keep-alive
	Waits     shownWaits      `json:"waited_for_boot"`
	SavedGPUs float64         `json:"saved_gpu_hours"`
	IdleHours float64         `json:"idle_node_hours"`
	BootHours float64         `json:"boot_node_hours"`
	Extra     float64         `json:"extra_node_hours"` // idle and booting, beyond nothing
	Cost      *contract.Money `json:"extra_cost"`       // nil is not known
	Note      string          `json:"note,omitempty"`
}

// assumed is what the history does not say.
type assumed struct {
	SuspendTime   int64   `json:"suspend_time"`
	ResumeTimeout int64   `json:"resume_timeout"`
	Asked         bool    `json:"asked_from_cluster"`
	Boot          int64   `json:"boot"`
	BootBasis     string  `json:"boot_basis"`
	BootsSeen     int     `json:"boots_seen"`
	WaitWorth     float64 `json:"wait_worth_node_hours"`
}

func newShownReport(in input, got coldstart.Report, r *reportFlags) shownReport {
	s := shownReport{
		From: atTime(in.period.From), To: atTime(in.period.Until), LearnedFrom: atTime(in.period.Begin), Source: in.source,
		Rows: rowCounts{Read: in.rows, Broken: in.broken, First: in.firstWrong, NeverRan: in.neverRan,
			Running: in.running, Own: got.Summary.Own, Users: len(in.users)},
		Starts: newStartCounts(got.Summary),
		Assumed: assumed{SuspendTime: in.assume.SuspendTime, ResumeTimeout: in.assume.BootLimit, Asked: in.asked,
			Boot: got.Boot.Seconds, BootBasis: string(got.Boot.Basis), BootsSeen: got.Boot.Seen, WaitWorth: r.waitWorth},
		hides: in.hides, all: len(r.keepAlives) > 0,
	}
	if in.price > 0 {
		s.Price = &contract.Money{Amount: in.price.Decimal(), Currency: contract.Currency}
	}
	for _, o := range got.Policies {
		s.Policies = append(s.Policies, newShownPolicy(o, got.Policies[0], in.price))
	}
	s.noteKeepAlives(got.BestKeepAlive, got.EqualKeepAlive)
	return s
}

func atTime(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

func newStartCounts(s coldstart.Summary) startCounts {
	return startCounts{All: s.Starts, GPUs: s.GPUs, Nodes: s.Nodes, StaysUp: s.StaysUp, BusyHours: round(s.BusyNodeHours),
		AtOnce: s.AtOnce, Boot: newShownWaits(s.Boot), Resources: newShownWaits(s.Resources),
		Limits: newShownWaits(s.Limits), Priority: newShownWaits(s.Priority), Held: newShownWaits(s.Ineligible),
		Untold: newShownWaits(s.Untold), Refuted: s.Refuted, Open: s.Open}
}

func newShownWaits(w coldstart.Waits) shownWaits {
	return shownWaits{Starts: w.Starts, P50: w.P50, P90: w.P90, Longest: w.Longest,
		GPUHours: round(float64(w.GPUSeconds) / 3600)}
}

func newShownPolicy(o, nothing coldstart.Outcome, price money.MicroUSD) shownPolicy {
	p := shownPolicy{Policy: o.Policy, Waits: newShownWaits(o.Waits), IdleHours: round(o.IdleHours),
		BootHours: round(o.BootHours), Extra: round(o.Overhead() - nothing.Overhead()),
		SavedGPUs: round(float64(nothing.Waits.GPUSeconds-o.Waits.GPUSeconds) / 3600)}
	if o.Policy == coldstart.KeepAlive {
		p.Keep = &o.Keep
	}
	if price > 0 {
		p.Cost = &contract.Money{Currency: contract.Currency,
			Amount: money.MicroUSD(math.Round((o.Overhead() - nothing.Overhead()) * float64(price))).Decimal()}
	}
	return p
}

// round cuts hours to three decimals: a few seconds.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// noteKeepAlives marks the two keep-alives that say most.
func (s *shownReport) noteKeepAlives(best, equal int) {
	const cheapest = "the cheapest of the longer ones, in hindsight"
	const first = "the first to wait no longer than the forecast"
	switch {
	case best < 0:
	case best == equal:
		s.Policies[best].Note = cheapest + ", and " + first
	default:
		s.Policies[best].Note = cheapest
	}
	if equal >= 0 && equal != best {
		s.Policies[equal].Note = first
	}
}

// shownPolicies are those of the table: nothing, the keep-alives that were asked
// for or those that say most, the forecast and perfect foresight.
func (s shownReport) shownPolicies() []shownPolicy {
	return slices.DeleteFunc(slices.Clone(s.Policies),
		func(p shownPolicy) bool { return p.Keep != nil && !s.all && p.Note == "" })
}
