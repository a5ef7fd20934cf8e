package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/evidence"
)

// What a source of evidence may lose: this share of an overhead of this share of
// the busy GPU-hours, half of it at once and half of it over the whole trace.
const (
	lossShare   = 0.02
	budgetShare = 0.05
)

// lossBound is the configuration of track records whose sources can lose no more in the
// time of the trace.
func lossBound(t backtest.Trace) evidence.Config {
	first, _, last := t.Window()
	busy := 0.0
	for _, j := range t.Jobs {
		busy += float64(j.GPUs) * float64(max(0, min(j.Submit+j.Duration, last)-j.Submit)) / 3600
	}
	return evidence.Config{Allowance: lossShare * budgetShare * busy / 2,
		Refill: max(time.Hour, time.Duration(last-first)*time.Second)}
}

// ingestEvidence makes policies of statistics hear the scenario's messages. All tenants
// share the track records. price is what an hour of one waiting job is worth, in GPU-hours.
func ingestEvidence(s *scenario, price float64,
	statistics func() func(tenant int) backtest.Policy) func() func(tenant int) backtest.Policy {
	return func() func(int) backtest.Policy {
		book, err := evidence.New(lossBound(s.trace))
		panicOnError(err)
		inner, terms := statistics(), evidence.Terms{WaitPrice: price, GPUPrice: 1,
			Boot: time.Duration(s.boot) * time.Second}
		return func(tenant int) backtest.Policy {
			return newEvidencePolicy(inner(tenant), book, terms,
				recordsOf(s.trace.Tenants[tenant], s.messagesTo(tenant)))
		}
	}
}

// recordsOf are the messages of a tenant as evidence.
func recordsOf(tenant string, messages []Message) []evidence.Record {
	all := make([]evidence.Record, len(messages))
	for i, m := range messages {
		start := time.Unix(m.Start, 0)
		all[i] = evidence.Record{
			Source: "synthetic", Reason: "announced", Tenant: tenant, Sent: time.Unix(m.Sent, 0), Start: start,
			End: start,
			Low: m.Low, Mid: m.Mid, High: m.High, Probability: m.Probability,
		}
	}
	return all
}

// trustSettings are the reference with a source whose trust is earned on uplift.
func trustSettings(s *scenario) []setting {
	if s.messages == nil {
		return nil
	}
	var all []setting
	window := s.boot + tick
	for _, price := range []float64{8, 16, 32, 64, 128, 192, 256, 320, 512} {
		theta := float64(window) / (price * float64(s.boot))
		all = append(all, setting{label: fmt.Sprintf("r %.4g", price), price: price,
			policies: ingestEvidence(s, price, func() func(int) backtest.Policy {
				m := newHazard()
				return func(tenant int) backtest.Policy {
					return makePunctual(&reference{ticker: newTicker(), past: newPast(tenant, window), model: m,
						theta: theta})
				}
			})})
	}
	return all
}

// evidencePolicy lets a policy of statistics hear what was announced. Its target is the
// statistics' own, or, while a record holds that the gate accepted, the demand and
// what was claimed and has not come: whichever is more. What each record is worth
// is seen beside what statistics alone would have done.
type evidencePolicy struct {
	statistics backtest.Policy
	book       *evidence.TrackRecords // of all tenants
	watch      *evidence.Watch
	terms      evidence.Terms
	records    []evidence.Record // that have not begun, in the order in which their holds do
	open       []held
	own        int     // the statistics' target
	changed    bool    // the demand, while a record is open
	size       float64 // running mean GPUs of a job
	last       int64   // second that Target was called for
}

// held is a record that is open.
type held struct {
	id           string
	doubt, until int64
}

// newest is the weight of the latest job in the running mean of job sizes.
const newest = 0.05

func newEvidencePolicy(statistics backtest.Policy, book *evidence.TrackRecords, terms evidence.Terms,
	records []evidence.Record) *evidencePolicy {
	h := &evidencePolicy{statistics: statistics, book: book, terms: terms, watch: evidence.NewWatch(terms.Boot),
		records: slices.Clone(records), last: math.MinInt64}
	slices.SortStableFunc(h.records, func(a, b evidence.Record) int { return int(h.holdBegins(a) - h.holdBegins(b)) })
	return h
}

// holdBegins is the second in which the hold of a record can begin.
func (h *evidencePolicy) holdBegins(r evidence.Record) int64 {
	from, _, _ := h.terms.Hold(r)
	return max(from.Unix(), r.Sent.Unix())
}

// Submit tells of a job.
func (h *evidencePolicy) Submit(now int64, j backtest.Job) {
	h.statistics.Submit(now, j)
	h.watch.Submit(time.Unix(now, 0), j.GPUs)
	if h.size == 0 {
		h.size = float64(j.GPUs)
	}
	h.size += newest * (float64(j.GPUs) - h.size)
	h.changed = len(h.open) > 0
}

// End tells of its end.
func (h *evidencePolicy) End(now int64, j backtest.Job, started int64) {
	h.statistics.End(now, j, started)
	h.watch.End(time.Unix(now, 0), j.GPUs)
	h.changed = len(h.open) > 0
}

// Next is when the statistics want to be asked, a hold begins, is given up or
// ends, or the demand has changed under one.
func (h *evidencePolicy) Next() int64 {
	if h.changed {
		return math.MinInt64
	}
	at := h.statistics.Next()
	if len(h.records) > 0 {
		at = min(at, h.holdBegins(h.records[0]))
	}
	for _, o := range h.open {
		if at = min(at, o.until); o.doubt > h.last {
			at = min(at, o.doubt)
		}
	}
	return at
}

// Target returns the larger of the two targets.
func (h *evidencePolicy) Target(now int64) int {
	h.changed, h.last = false, now
	at := time.Unix(now, 0)
	if h.statistics.Next() <= now {
		h.own = h.statistics.Target(now)
		h.watch.Plan(at, h.own)
	}
	h.closeRecords(at)
	h.considerRecords(at)
	if claimed := h.watch.Claimed(at); claimed > 0 {
		return max(h.own, h.watch.Demand()+claimed)
	}
	return h.own
}

// closeRecords judges the records whose holds are over.
func (h *evidencePolicy) closeRecords(now time.Time) {
	h.open = slices.DeleteFunc(h.open, func(o held) bool {
		if o.until > now.Unix() {
			return false
		}
		if out, ok := h.watch.Close(now, o.id); ok {
			panicOnError(h.book.Close(now, o.id, out))
		}
		return true
	})
}

// considerRecords asks the gate about the records whose holds begin.
func (h *evidencePolicy) considerRecords(now time.Time) {
	for ; len(h.records) > 0 && h.holdBegins(h.records[0]) <= now.Unix(); h.records = h.records[1:] {
		r, terms := h.records[0], h.terms
		terms.JobGPUs = max(1, h.size)
		id := r.Tenant + " " + strconv.Itoa(len(h.records))
		d, err := h.book.Consider(now, id, r, terms)
		panicOnError(err)
		if _, _, open := h.book.Open(id); open {
			h.watch.Open(now, id, r, d)
			h.open = append(h.open, held{id, d.Doubt.Unix(), d.Until.Unix()})
		}
	}
}

// panicOnError stops at what cannot be: every record has an id of its own, and the bound
// of a trace is a number.
func panicOnError(err error) {
	if err != nil {
		panic(err)
	}
}
