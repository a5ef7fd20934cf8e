package main

import (
	"math"
	"slices"
	"testing"

	"github.com/forewarm/forewarm/core/backtest"
)

func TestSessionsBeginAfterSilence(t *testing.T) {
	t.Parallel()
	job := func(id string, at int64, gpus, tenant int) backtest.Job {
		return backtest.Job{ID: id, Submit: at, Duration: 1, GPUs: gpus, Tenant: tenant}
	}
	got := listSessions(backtest.Trace{Tenants: []string{"a", "b"}, Jobs: []backtest.Job{
		job("1", 1000, 1, 0), job("2", 1100, 8, 1), job("3", 1599, 2, 0), job("4", 1600, 4, 0), job("5", 2200, 1, 0),
		job("6", 2801, 2, 0),
	}})
	want := []session{{0, "1", 1000, 3}, {1, "2", 1100, 8}, {0, "6", 2801, 2}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMessagesHaveTheirRecallAndPrecision(t *testing.T) {
	t.Parallel()
	trace := drawnTrace(3, 120, "a", "b", "c")
	first, _, last := trace.Window()
	all := listSessions(trace)
	for _, ch := range []channel{{0.6, 0.5}, {0.6, 0.1}, {0.9, 0.9}, {0, 0.5}} {
		messages := Messages(trace, ch.recall, ch.precision)
		if again := Messages(trace, ch.recall, ch.precision); !slices.Equal(again, messages) {
			t.Errorf("%v: a second call gives other messages", ch)
		}
		if !slices.IsSortedFunc(messages, func(a, b Message) int { return int(a.Sent - b.Sent) }) {
			t.Errorf("%v: not in the order in which they are sent", ch)
		}
		for _, m := range messages {
			if ahead := m.Start - m.Sent; ahead < 2*60 || ahead > 33*60 || m.Low < 1 || m.Low != m.Mid ||
				m.Mid != m.High {
				t.Fatalf("%v: %+v", ch, m)
			}
			if m.Start < first-180 || m.Start > last+180 {
				t.Fatalf("%v: %+v is outside the trace", ch, m)
			}
		}
		// Wrong ones that fall outside the trace are not sent.
		want := ch.recall * float64(len(all)) / ch.precision
		if got := float64(len(messages)); math.Abs(got-want) > 0.08*want+1 {
			t.Errorf("%v: %v messages about %d sessions, want about %.0f", ch, got, len(all), want)
		}
	}
}

// A message that is right is within 3 minutes of a session of its tenant, for
// half to double its GPUs.
func TestSureMessagesAreRight(t *testing.T) {
	t.Parallel()
	trace := drawnTrace(4, 30, "a", "b")
	all := listSessions(trace)
	messages := Messages(trace, 1, 1)
	if len(messages) != len(all) {
		t.Fatalf("%d messages about %d sessions", len(messages), len(all))
	}
	for _, m := range messages {
		if !slices.ContainsFunc(all, func(s session) bool {
			off := m.Start - s.start
			return s.tenant == m.Tenant && off >= -180 && off <= 180 && 2*m.Mid >= s.gpus && m.Mid <= 2*s.gpus
		}) {
			t.Errorf("%+v is about no session", m)
		}
	}
}

// The first outputs of SplitMix64 from seed 1234567, as published with it.
func TestSplitMix(t *testing.T) {
	t.Parallel()
	s := splitMix(1234567)
	for _, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423} {
		if got := s.nextNumber(); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
