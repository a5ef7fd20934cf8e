package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/scheduler"
)

// playbackWorld is a node of eight GPUs, which a job holds until three, and jobs that wait in the order of their ids.
func playbackWorld(t *testing.T, gpus ...int) *scheduler.Scheduler {
	t.Helper()
	job := func(id string, gpus int) scheduler.Job {
		return scheduler.Job{ID: id, Tenant: "a", Eligible: noon.Add(-time.Hour), MaxRuntime: 3 * time.Hour,
			Request: placement.Request{Shape: capacity.Shape{Nodes: 1, PerNode: gpus}}}
	}
	from := scheduler.Snapshot{Nodes: []placement.Node{{ID: "n", Kind: placement.Kind{GPUs: 8}}},
		Running: []scheduler.Running{{Job: job("runs", 8), Started: noon, Until: noon.Add(3 * time.Hour),
			Spots: placement.Placement{{Node: "n", GPUs: 8, Devices: 0xff}}}}}
	for i, n := range gpus {
		from.Waiting = append(from.Waiting, job(string(rune('a'+i)), n))
	}
	s, err := scheduler.Restore(scheduler.Policy{Order: scheduler.Arrival, Promises: 1}, from)
	require.NoError(t, err)
	return s
}

// hourly is a playback in which each job takes a minute to begin, and an hour to end.
func hourly(change func(*scheduler.Playback)) scheduler.Playback {
	p := scheduler.Playback{Cycles: 99, Refused: func(string) bool { return false },
		Begin: func(_ string, _ placement.Placement, at time.Time) (begins, ends time.Time) {
			return at.Add(time.Minute), at.Add(time.Hour)
		}}
	if change != nil {
		change(&p)
	}
	return p
}

func TestStartsArePlayedForward(t *testing.T) {
	t.Parallel()
	near := func(got scheduler.Foreseen, want time.Duration) {
		t.Helper()
		at := got.At.Sub(noon) - time.Minute
		require.GreaterOrEqual(t, at, want)
		require.LessOrEqual(t, at, want+want/25)
	}
	early := func(p *scheduler.Playback) { p.Ends = map[string]time.Time{"runs": noon.Add(30 * time.Minute)} }
	got := playbackWorld(t, 8, 4, 4).Play(hourly(early), noon)
	require.Len(t, got, 3)
	near(got["a"], 30*time.Minute)
	near(got["b"], 90*time.Minute)
	near(got["c"], 90*time.Minute)
	require.True(t, got["a"].Waited)
	require.False(t, got["a"].Unsure)

	got = playbackWorld(t, 8).Play(hourly(nil), noon)
	near(got["a"], 3*time.Hour)

	got = playbackWorld(t, 8, 8).Play(hourly(func(p *scheduler.Playback) {
		early(p)
		p.Unsure = map[string]bool{"a": true}
	}), noon)
	require.False(t, got["a"].Unsure)
	require.True(t, got["b"].Unsure, "it comes after one of whose end nothing is known")

	got = playbackWorld(t, 8, 8).Play(hourly(func(p *scheduler.Playback) {
		early(p)
		p.Wanted = "a"
	}), noon)
	require.NotContains(t, got, "b")

	got = playbackWorld(t, 8, 8).Play(hourly(func(p *scheduler.Playback) { p.Cycles = 2 }), noon)
	require.NotContains(t, got, "b", "beyond the bound nothing is said")
}

func TestNothingIsPlayedIntoWhatIsBooked(t *testing.T) {
	t.Parallel()
	got := playbackWorld(t, 8).Play(hourly(func(p *scheduler.Playback) {
		p.Ends = map[string]time.Time{"runs": noon.Add(30 * time.Minute)}
		p.Booked = []placement.Promised{{ID: "booked", Spots: placement.Placement{{Node: "n", GPUs: 8}},
			From: noon.Add(2 * time.Hour), Until: noon.Add(4 * time.Hour)}}
	}), noon)
	require.False(t, got["a"].At.Before(noon.Add(4*time.Hour)), "its limit would reach into the window")
}

func TestWhatIsRefusedNowIsNotPlayed(t *testing.T) {
	t.Parallel()
	s, err := scheduler.Restore(scheduler.Policy{Order: scheduler.Arrival}, scheduler.Snapshot{
		Nodes: []placement.Node{{ID: "n", Kind: placement.Kind{GPUs: 1}}},
		Waiting: []scheduler.Job{
			{ID: "a", Request: placement.Request{Shape: capacity.Shape{Nodes: 1, PerNode: 1}}, Eligible: noon},
			{ID: "b", Request: placement.Request{Shape: capacity.Shape{Nodes: 1, PerNode: 1}}, Eligible: noon}}})
	require.NoError(t, err)
	got := s.Play(hourly(func(p *scheduler.Playback) { p.Refused = func(id string) bool { return id == "a" } }),
		noon.Add(time.Minute))
	require.Len(t, got, 1)
	require.Equal(t, scheduler.Foreseen{At: noon.Add(2 * time.Minute)}, got["b"])
}

// A look at a queue plays 300 jobs forward three times.
func BenchmarkPlay(b *testing.B) {
	for b.Loop() {
		var nodes []placement.Node
		from := scheduler.Snapshot{}
		for i := range 64 {
			n := placement.Node{ID: "n" + string(rune('0'+i)), Kind: placement.Kind{GPUs: 8}}
			nodes = append(nodes, n)
			from.Running = append(from.Running, scheduler.Running{Job: scheduler.Job{ID: "r" + n.ID, Tenant: "a",
				Request: placement.Request{Shape: capacity.Shape{Nodes: 1, PerNode: 8}}}, Started: noon,
				Until: noon.Add(time.Duration(60+i) * time.Minute),
				Spots: placement.Placement{{Node: n.ID, GPUs: 8, Devices: 0xff}}})
		}
		from.Nodes = nodes
		for i := range 300 {
			from.Waiting = append(from.Waiting, scheduler.Job{ID: "w" + string(rune('0'+i)), Tenant: "a",
				Eligible: noon.Add(-time.Duration(i) * time.Minute), MaxRuntime: time.Duration(60+i%97) * time.Minute,
				Request: placement.Request{Shape: capacity.Shape{Nodes: 1 + i%3, PerNode: 8}}})
		}
		s, err := scheduler.Restore(scheduler.Default(), from)
		require.NoError(b, err)
		p := hourly(func(p *scheduler.Playback) { p.Cycles = 400 })
		p.Begin = func(id string, _ placement.Placement, at time.Time) (begins, ends time.Time) {
			return at, at.Add(time.Duration(20+len(id)*int(id[1])%50) * time.Minute)
		}
		if got := s.Play(p, noon); len(got) != 300 {
			b.Fatal(len(got))
		}
	}
}
