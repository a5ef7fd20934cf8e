package evidence

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/phrase"
)

// Terms say what waiting and idling cost, and how a hold is made. Prices are in
// any one currency; with a GPUPrice of 1, WaitPrice is the user's "how many idle
// GPU-hours is an hour of waiting worth".
type Terms struct {
	WaitPrice  float64       // of one hour of one waiting job
	GPUPrice   float64       // of one hour of one GPU
	Boot       time.Duration // who finds no warm GPU waits this long
	Guard      time.Duration // the GPUs are ready this long before the start; default 2 min
	Doubt      time.Duration // and given up this long after it if nothing has come; default 4 min
	Tail       time.Duration // what has not come of a need that has begun is held this long; default 12 min
	MinBilling time.Duration // a GPU that was booted is paid for at least this long
	JobGPUs    float64       // GPUs of the tenant's typical job; below 1 counts as 1
	MaxGPUs    int           // hold no more than this; 0 means no limit but that of a Record
}

// WithDefaults returns t with its zero fields filled in where zero cannot be.
func (t Terms) WithDefaults() Terms {
	if t.Guard == 0 {
		t.Guard = 2 * time.Minute
	}
	if t.Doubt == 0 {
		t.Doubt = 4 * time.Minute
	}
	if t.Tail == 0 {
		t.Tail = 12 * time.Minute
	}
	if !(t.JobGPUs >= 1) {
		t.JobGPUs = 1
	}
	if t.MaxGPUs <= 0 || t.MaxGPUs > MaxGPUs {
		t.MaxGPUs = MaxGPUs
	}
	return t
}

func (t Terms) isSound() bool {
	return areFinite(t.WaitPrice, t.GPUPrice, t.JobGPUs) && t.WaitPrice >= 0 && t.GPUPrice > 0 &&
		t.Boot > 0 && t.Boot <= maxSpan && t.Guard >= 0 && t.Doubt >= 0 && t.Tail >= 0 && t.MinBilling >= 0
}

// Hold returns when GPUs for the record are to be supplied: a boot and the guard
// before the start, until the tail after the latest start, or until doubt if
// nothing has come.
func (t Terms) Hold(r Record) (from, doubt, until time.Time) {
	t = t.WithDefaults()
	return r.Start.Add(-t.Boot - t.Guard), r.End.Add(min(t.Doubt, t.Tail)), r.End.Add(t.Tail)
}

// Verdict is what the gate said of a record.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted"
	Unworthy Verdict = "not_worth_it"  // the idling would cost more than the waits
	Demoted  Verdict = "demoted"       // the source or the kind does harm at present
	Broke    Verdict = "nothing_left"  // the source has lost what it may lose
	Late     Verdict = "too_late"      // the time of the record is over
	Invalid  Verdict = "not_a_record"  // see Record.Check, or the Terms cannot be
	Crowded  Verdict = "too_many_open" // more records are open than are kept
)

// Decision is what the gate decided about one record, with the numbers that it
// was made from: the same inputs give the same decision.
type Decision struct {
	Verdict Verdict   `json:"verdict"`
	GPUs    int       `json:"gpus"` // to hold, beyond what is in use; 0 unless accepted
	From    time.Time `json:"from"`
	Doubt   time.Time `json:"doubt"` // given up then if nothing has come
	Until   time.Time `json:"until"`
	Size    int       `json:"size"`  // the judged size with the best balance: see Record.Held
	Trust   float64   `json:"trust"` // mean of the Beta posterior on uplift
	Saved   float64   `json:"saved"` // waits, in boots, that the hold is expected to spare
	Idle    float64   `json:"idle"`  // share of the hold that is expected to idle
	Gain    float64   `json:"gain"`  // expected worth of the waits spared, in the currency of Terms
	Cost    float64   `json:"cost"`  // expected cost of the idling
}

// Explain says in one line why.
func (d Decision) Explain() string {
	numbers := fmt.Sprintf("with trust %.2f, %.2f waits for a boot are expected to be spared, worth %.2f, and %.2f "+
		"of the hold to idle, at a cost of %.2f",
		d.Trust, d.Saved, d.Gain, d.Idle, d.Cost)
	switch d.Verdict {
	case Accepted:
		return fmt.Sprintf("hold %s from %s to %s: %s", phrase.Count(d.GPUs, "GPU"), d.From.UTC().Format(time.TimeOnly),
			d.Until.UTC().Format(time.TimeOnly), numbers)
	case Unworthy:
		return "hold none: " + numbers
	case Demoted:
		return "hold none: the source has cost more than it saved lately; it is only watched"
	case Broke:
		return "hold none: the source has lost what it may lose"
	default:
		return "hold none: " + string(d.Verdict)
	}
}

// eager is how many times its further cost it must bring in to hold more than what
// was claimed. Of several sizes, the one that chance made look best is the largest
// too often: on messages of precision 0.1 such holds lost most of what was lost.
const eager = 4

// chooseSize finds the size of the record to hold. A wait that is spared saves a boot's
// worth of waiting, and what idles of a hold costs its price. With trust p, n claimed
// jobs and g GPUs this is the rule p·n·r·B >= g·((1-p)·miss + p·hit), whose p·n and
// idle shares are learned for each kind, tenant and size. More than what is claimed
// is held only if that pays well.
func (t Terms) chooseSize(r Record, b belief) Decision {
	best := t.judgeSize(r, b, 0)
	accepted := best.Gain > best.Cost
	for i := 1; i < sizes; i++ {
		d, times := t.judgeSize(r, b, i), 1.0
		if multiples[i] > 1 {
			times = eager
		}
		gain, cost := d.Gain, d.Cost
		if accepted {
			gain, cost = gain-best.Gain, cost-best.Cost
		}
		if gain > cost && gain > times*cost {
			best, accepted = d, true
		}
	}
	if accepted {
		best.Verdict = Accepted
	}
	return best
}

// judgeSize is the decision with one of the judged sizes.
func (t Terms) judgeSize(r Record, b belief, i int) Decision {
	d := Decision{Verdict: Unworthy, Size: i, Trust: b.trust, Idle: b.idle[i]}
	d.From, d.Doubt, d.Until = t.Hold(r)
	d.GPUs = t.gpusHeld(r, i)
	d.Saved = t.jobsServed(r, i) * b.saved[i] * b.cautiousShare()
	d.Gain = t.WaitPrice * t.Boot.Hours() * d.Saved
	d.Cost = t.GPUPrice * t.hoursHeld(r, i) * b.idle[i]
	return d
}

// gpusHeld, jobs and hours are what the i-th judged size of a record holds, claims
// and costs at most, in GPU-hours.
func (t Terms) gpusHeld(r Record, i int) int { return min(t.MaxGPUs, r.Held(i)) }

func (t Terms) jobsServed(r Record, i int) float64 {
	return max(1, float64(t.gpusHeld(r, i))/t.JobGPUs)
}

func (t Terms) hoursHeld(r Record, i int) float64 {
	from, _, until := t.Hold(r)
	return float64(t.gpusHeld(r, i)) * max(until.Sub(from), t.MinBilling).Hours()
}
