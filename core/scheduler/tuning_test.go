package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/scheduler"
)

func named(names, apart placement.Set) func(*scheduler.Job) {
	return func(j *scheduler.Job) { j.Request.Company = placement.Company{Names: names, Apart: apart} }
}

// Who is kept apart waits, is told why, and holds up nobody.
func TestWhoIsKeptApartHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Order: scheduler.Arrival, Promises: 1}, 1)
	submit(t, s, want("1", 1, 9, named("web", "web"), submitted(-3)), want("2", 1, 9, named("web", "web"), submitted(-2)),
		want("3", 1, 20, submitted(-1)))
	d := s.Cycle(noon)
	require.Equal(t, []string{"1", "3"}, started(d))
	require.Len(t, d.Blocked, 1)
	require.Equal(t, scheduler.Blocker(placement.KeptApart), d.Blocked[0].Blocker)
	require.Equal(t, noon.Add(hours(9)), d.Promised[0].From, "when the other must be over")
	anew, err := scheduler.Restore(scheduler.Policy{Order: scheduler.Arrival, Promises: 1}, s.Snapshot())
	require.NoError(t, err)
	require.Empty(t, started(anew.Cycle(noon)), "it knows who is there")
	require.True(t, s.Finish("1", noon.Add(time.Hour)))
	require.Equal(t, []string{"2"}, started(s.Cycle(noon.Add(time.Hour))))
}

// Nobody leaves for jobs of a patient class.
func TestNobodyLeavesForThePatient(t *testing.T) {
	t.Parallel()
	for patient, plans := range map[bool]int{true: 0, false: 1} {
		p := leavingPolicy()
		p.Classes = map[string]scheduler.Class{"high": {Level: 1, Patient: patient}, "low": {Level: -1}}
		s := newScheduler(t, p, 1)
		submit(t, s, want("1", 4, 9, class("low"), keepsWork))
		s.Cycle(noon)
		submit(t, s, want("2", 4, 1, class("high"), submitted(1)))
		require.Len(t, s.Cycle(noon.Add(time.Hour)).Plans, plans)
	}
}

// Each number as a table: of two jobs that want the one node, another one is first once it is changed.
func TestNumbersOfThePolicy(t *testing.T) {
	t.Parallel()
	had := func(h float64) func(*scheduler.Job) { return func(j *scheduler.Job) { j.Attained = hours(h) } }
	for name, tc := range map[string]struct {
		order        scheduler.Order
		usual, other scheduler.Job // who is first by default, and with the change
		change       func(*scheduler.Policy)
	}{
		"bands": {scheduler.Balanced, want("a", 4, 9), want("b", 4, 1, had(1), submitted(-5)),
			func(p *scheduler.Policy) { p.Bands = []int{50} }},
		"the class's value": {scheduler.Balanced, want("a", 4, 9), want("b", 4, 9, class("low"), submitted(-1)),
			func(p *scheduler.Policy) { p.Classes = nil }},
		"softening": {scheduler.Balanced, want("a", 4, 1, submitted(-0.1)), want("b", 4, 6, submitted(-1)),
			func(p *scheduler.Policy) { p.Softening = time.Second }},
	} {
		for _, changed := range []bool{false, true} {
			p := scheduler.Policy{Order: tc.order, Classes: levels, Promises: 1}
			first := "a"
			if changed {
				tc.change(&p)
				first = "b"
			}
			s := newScheduler(t, p, 1)
			submit(t, s, tc.usual, tc.other)
			require.Equal(t, first, started(s.Cycle(noon))[0], name)
		}
	}
}

// Age decides in multifactor only as far as it weighs, and until it is full.
func TestWeightsOfMultifactor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		factors scheduler.Factors
		first   string
	}{
		"by default who had less":           {scheduler.Factors{}, "less"},
		"the older, where age weighs much":  {scheduler.Factors{Age: 500, Share: 1}, "old"},
		"the older, where age alone weighs": {scheduler.Factors{Age: 1}, "old"},
		"who had less, where both are full": {scheduler.Factors{Age: 500, Share: 1, FullAge: time.Minute}, "less"},
	} {
		p := scheduler.Policy{Order: scheduler.Multifactor, Factors: tc.factors}
		s := newScheduler(t, p, 1)
		submit(t, s, want("before", 4, 9, of("had"), submitted(-12)))
		require.Equal(t, []string{"before"}, started(s.Cycle(noon.Add(hours(-12)))))
		require.True(t, s.Finish("before", noon))
		submit(t, s, want("old", 4, 1, of("had"), submitted(-11)), want("less", 4, 1, of("new"), submitted(-0.5)))
		require.Equal(t, tc.first, started(s.Cycle(noon))[0], name)
	}
}
