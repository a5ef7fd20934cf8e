package main

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/forewarm/forewarm/core/backtest"
)

// Message is what a source says of work that is to come: somebody wrote of a run,
// a download ended, a calendar has an entry. Nothing in it tells whether it is
// true.
type Message struct {
	Tenant int
	Sent   int64 // Unix seconds; nothing of the message is known before
	Start  int64 // when the work is said to begin
	// Low, Mid and High are how many GPUs it is said to need. This source knows no
	// range, so they are equal.
	Low, Mid, High int
	Probability    float64 // that the source gives itself; this one is always sure
}

// channel is a synthetic source: which share of the sessions it announces, and
// which share of its messages is about one.
type channel struct{ recall, precision float64 }

func (c channel) isSound() bool {
	return c.recall >= 0 && c.recall <= 1 && c.precision > 0 && c.precision <= 1
}

const (
	silence    = 10 * 60 // seconds without an arrival, after which a session begins
	sessionGap = 10 * 60 // seconds in which a session's GPUs arrive
)

// session is work that begins after a silence.
type session struct {
	tenant int
	id     string // of its first job
	start  int64
	gpus   int // that arrive within sessionGap
}

// listSessions lists the sessions of a trace.
func listSessions(t backtest.Trace) []session {
	var all []session
	latest := make([]int, len(t.Tenants)) // session of each tenant, counted from 1
	last := make([]int64, len(t.Tenants)) // arrival
	for _, j := range t.Jobs {
		if latest[j.Tenant] == 0 || j.Submit-last[j.Tenant] > silence {
			all = append(all, session{tenant: j.Tenant, id: j.ID, start: j.Submit})
			latest[j.Tenant] = len(all)
		}
		last[j.Tenant] = j.Submit
		if s := &all[latest[j.Tenant]-1]; j.Submit-s.start < sessionGap {
			s.gpus += j.GPUs
		}
	}
	return all
}

// Messages returns what a source says that announces the share recall of all
// sessions and is right with the share precision of its messages, in the order in
// which it says it. The same trace gives the same messages.
func Messages(t backtest.Trace, recall, precision float64) []Message {
	first, _, last := t.Window()
	var all []Message
	for _, s := range listSessions(t) {
		chance := newSplitMix(s.id)
		if chance.nextFloat() < recall {
			all = append(all, chance.drawMessage(s, s.start))
		}
		for wrong := recall * (1 - precision) / precision; chance.nextFloat() < wrong; wrong-- {
			if at := s.start + chance.nextDisplacement(); at >= first && at <= last {
				all = append(all, chance.drawMessage(s, at))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Message) int { return cmp.Compare(a.Sent, b.Sent) })
	return all
}

// splitMix is the generator SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
type splitMix uint64

// newSplitMix starts from the FNV-1a hash of a job's id.
func newSplitMix(id string) *splitMix {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // a hash takes everything
	s := splitMix(h.Sum64())
	return &s
}

func (s *splitMix) nextNumber() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// nextFloat returns a number of [0, 1).
func (s *splitMix) nextFloat() float64 { return float64(s.nextNumber()>>11) / (1 << 53) }

// nextSeconds returns a number of seconds, from a number of minutes up to another.
func (s *splitMix) nextSeconds(from, to float64) int64 {
	return int64(60 * (from + (to-from)*s.nextFloat()))
}

// nextDisplacement returns how many seconds a wrong message is off: one to six days,
// either way, and up to two hours.
func (s *splitMix) nextDisplacement() int64 {
	days := 1 + int64(s.nextNumber()%6)
	if s.nextFloat() < 0.5 {
		days = -days
	}
	return days*24*3600 + s.nextSeconds(0, 120)
}

// drawMessage announces a session at a time: 5 to 30 minutes ahead, up to 3 minutes
// off, and for half or double the GPUs in two cases of ten each.
func (s *splitMix) drawMessage(of session, at int64) Message {
	sent := at - s.nextSeconds(5, 30)
	start := at + s.nextSeconds(-3, 3)
	gpus := of.gpus
	switch u := s.nextFloat(); {
	case u < 0.2:
		gpus = (gpus + 1) / 2
	case u < 0.4:
		gpus *= 2
	}
	return Message{of.tenant, sent, start, gpus, gpus, gpus, 1}
}
