package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/scheduler"
)

// reserved is some GPUs of one node of tenant a, made by user u, until so many hours from now.
func reserved(id, node string, gpus int, until float64, changes ...func(*scheduler.Reserved)) scheduler.Reserved {
	r := scheduler.Reserved{ID: id, For: reservation.Claimants{ForJobs: reservation.OwnJobs,
		Maker: reservation.Submitter{OrganizationID: "a", UserID: "u", KeyID: "k"}}, Until: noon.Add(hours(until)),
		Spots: placement.Placement{{Node: node, GPUs: gpus}}}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func anyone(r *scheduler.Reserved) { r.For.ForJobs = reservation.OrganizationJobs }
func madeBy(user string) func(*scheduler.Reserved) {
	return func(r *scheduler.Reserved) { r.For.Maker.UserID = user }
}
func withKey(key string) func(*scheduler.Job) { return func(j *scheduler.Job) { j.Key = key } }
func takenAfter(node string, hour float64) func(*scheduler.Reserved) {
	return func(r *scheduler.Reserved) { r.FreeUntil = map[string]time.Time{node: noon.Add(hours(hour))} }
}
func beside(s placement.Spot) func(*scheduler.Reserved) {
	return func(r *scheduler.Reserved) { r.Spots = append(r.Spots, s) }
}
func on(nodes, perNode int) func(*scheduler.Job) {
	return func(j *scheduler.Job) { j.Request.Shape = capacity.Shape{Nodes: nodes, PerNode: perNode} }
}

func claims(d scheduler.Decision) map[string]string {
	all := map[string]string{}
	for _, s := range d.Starts {
		all[s.Job] = s.Claims
	}
	return all
}

// Whose jobs claim what, as a table: of nodes n0 and n1, each with four GPUs.
func TestJobsClaimWhatIsReserved(t *testing.T) {
	t.Parallel()
	mine, other := by("u"), by("v")
	for name, tc := range map[string]struct {
		reserved []scheduler.Reserved
		jobs     []scheduler.Job
		want     map[string]string // by job; jobs that are not in it do not start
	}{
		"the submitter's own": {[]scheduler.Reserved{reserved("r", "n0", 4, 2)},
			[]scheduler.Job{want("j", 4, 1, mine)}, map[string]string{"j": "r"}},
		"the submitter's own by its key": {[]scheduler.Reserved{reserved("r", "n0", 4, 2, madeBy(""))},
			[]scheduler.Job{want("j", 4, 1, withKey("k"))}, map[string]string{"j": "r"}},
		"not another key's": {[]scheduler.Reserved{reserved("r", "n0", 4, 2, madeBy(""))},
			[]scheduler.Job{want("j", 4, 1, withKey("l"))}, map[string]string{"j": ""}},
		"not where others have it after": {[]scheduler.Reserved{reserved("r", "n0", 4, 2, takenAfter("n0", 3))},
			[]scheduler.Job{want("i", 4, 4, mine), want("j", 2, 3, mine)}, map[string]string{"i": "", "j": "r"}},
		"where nobody has it after": {[]scheduler.Reserved{reserved("p", "n0", 4, 2, takenAfter("n0", 3)),
			reserved("r", "n1", 4, 2)}, []scheduler.Job{want("j", 4, 4, mine)}, map[string]string{"j": "r"}},
		"not a colleague's": {[]scheduler.Reserved{reserved("r", "n0", 4, 2)},
			[]scheduler.Job{want("j", 4, 1, other)}, map[string]string{"j": ""}},
		"a colleague's for all": {[]scheduler.Reserved{reserved("r", "n0", 4, 2, anyone)},
			[]scheduler.Job{want("j", 4, 1, other)}, map[string]string{"j": "r"}},
		"not another tenant's": {[]scheduler.Reserved{reserved("r", "n0", 4, 2, anyone)},
			[]scheduler.Job{want("j", 4, 1, mine, of("b"))}, map[string]string{"j": ""}},
		"its own before others'": {
			[]scheduler.Reserved{reserved("p", "n0", 4, 2, anyone, madeBy("v")), reserved("r", "n1", 4, 2)},
			[]scheduler.Job{want("j", 4, 1, mine)}, map[string]string{"j": "r"}},
		"what lasts long enough": {[]scheduler.Reserved{reserved("p", "n0", 4, 1), reserved("r", "n1", 4, 3)},
			[]scheduler.Job{want("j", 4, 2, mine)}, map[string]string{"j": "r"}},
		"what leaves least": {[]scheduler.Reserved{reserved("p", "n0", 4, 2), reserved("r", "n1", 2, 2)},
			[]scheduler.Job{want("j", 2, 1, mine)}, map[string]string{"j": "r"}},
		"what ends first": {[]scheduler.Reserved{reserved("p", "n0", 4, 3), reserved("r", "n1", 4, 2)},
			[]scheduler.Job{want("j", 4, 1, mine)}, map[string]string{"j": "r"}},
		"not one that is too small": {[]scheduler.Reserved{reserved("r", "n0", 2, 2)},
			[]scheduler.Job{want("j", 4, 1, mine)}, map[string]string{"j": ""}},
		"not one that is over": {[]scheduler.Reserved{reserved("r", "n0", 4, 0)},
			[]scheduler.Job{want("j", 4, 1, mine)}, map[string]string{"j": ""}},
		"one by several": {[]scheduler.Reserved{reserved("r", "n0", 4, 2)},
			[]scheduler.Job{want("i", 2, 1, mine), want("j", 2, 1, mine), want("k", 2, 1, mine)},
			map[string]string{"i": "r", "j": "r", "k": ""}},
		"a gang, all of it": {[]scheduler.Reserved{reserved("r", "n0", 4, 2, beside(placement.Spot{Node: "n1", GPUs: 4}))},
			[]scheduler.Job{want("j", 4, 1, mine, on(2, 4))}, map[string]string{"j": "r"}},
		"a gang, nothing of less than it needs": {[]scheduler.Reserved{reserved("r", "n0", 4, 2)},
			[]scheduler.Job{want("j", 4, 1, mine, on(2, 4))}, map[string]string{"j": ""}},
		"before those whose turn it would be": {
			[]scheduler.Reserved{reserved("r", "n0", 4, 2, beside(placement.Spot{Node: "n1", GPUs: 4}))},
			[]scheduler.Job{want("j", 4, 1, mine, on(2, 4)), want("h", 4, 1, of("b"), class("high"))},
			map[string]string{"j": "r"}},
		"no more than its array may": {[]scheduler.Reserved{reserved("r", "n0", 4, 2)}, []scheduler.Job{
			want("i", 2, 1, mine, grouped), want("j", 2, 1, mine, grouped)}, map[string]string{"i": "r"}},
	} {
		s := newScheduler(t, scheduler.Policy{Classes: levels}, 2)
		s.Reserve(tc.reserved...)
		submit(t, s, tc.jobs...)
		require.Equal(t, tc.want, claims(s.Cycle(noon)), name)
	}
}

func grouped(j *scheduler.Job) { j.Group = scheduler.Group{Name: "g", Most: 1} }

// A job claims nothing on nodes on which it may not run, or that take no work.
func TestJobsClaimOnlyWhereTheyMayRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*placement.Node, *scheduler.Job){
		"a taint":    func(n *placement.Node, _ *scheduler.Job) { n.Taints = placement.NewSet("old") },
		"a label":    func(_ *placement.Node, j *scheduler.Job) { j.Request.Labels = placement.NewSet("fast") },
		"drained":    func(n *placement.Node, _ *scheduler.Job) { n.Drained = true },
		"hot":        func(n *placement.Node, _ *scheduler.Job) { n.HotUntil = noon.Add(time.Hour) },
		"not known":  func(n *placement.Node, _ *scheduler.Job) { n.ID = "other" },
		"fewer GPUs": func(n *placement.Node, _ *scheduler.Job) { n.GPUs = 1 },
	} {
		n := placement.Node{ID: "n0", Kind: placement.Kind{GPUs: 4}}
		j := want("j", 4, 1, by("u"))
		change(&n, &j)
		s, err := scheduler.New(scheduler.Policy{}, []placement.Node{n})
		require.NoError(t, err)
		s.Reserve(reserved("r", "n0", 4, 2))
		submit(t, s, j)
		require.Empty(t, claims(s.Cycle(noon))["j"], name)
	}
}

// A claim that could not be carried out is taken back: the job claims another one, or waits for its turn.
func TestAClaimIsTakenBack(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{}, 2)
	s.Reserve(reserved("q", "n0", 4, 2), reserved("r", "n1", 4, 2))
	submit(t, s, want("j", 4, 1, by("u")))
	require.Equal(t, map[string]string{"j": "q"}, claims(s.Cycle(noon)))
	require.True(t, s.Unclaim("j", noon))
	require.False(t, s.Unclaim("j", noon), "it has claimed nothing")
	require.Equal(t, 4, s.Snapshot().Reserved[0].Spots[0].GPUs)
	require.Equal(t, map[string]string{"j": "r"}, claims(s.Cycle(noon)))
	require.True(t, s.Unclaim("j", noon))
	require.Equal(t, map[string]string{"j": ""}, claims(s.Cycle(noon)))
}

// A job that claims something and cannot have it has its promise as before: nobody has taken its place meanwhile, and
// no more promises were made than may be.
func TestAClaimThatIsTakenBackLeavesThePromise(t *testing.T) {
	t.Parallel()
	for name, preempting := range map[string]bool{"a promise": false, "what others leave": true} {
		promised := scheduler.Promise{Preempting: preempting, Promised: placement.Promised{ID: "j",
			Spots: placement.Placement{{Node: "n0", GPUs: 4}}, From: noon.Add(hours(1)), Until: noon.Add(hours(3))}}
		s, err := scheduler.Restore(scheduler.Policy{Promises: 1}, scheduler.Snapshot{
			Nodes:   []placement.Node{{ID: "n0", Kind: placement.Kind{GPUs: 4}}, {ID: "n1", Kind: placement.Kind{GPUs: 4}}},
			Waiting: []scheduler.Job{want("j", 4, 2, by("u")), want("k", 4, 2, by("v"))},
			Running: []scheduler.Running{{Job: want("r", 4, 1), Started: noon, Until: noon.Add(hours(1)),
				Spots: placement.Placement{{Node: "n0", GPUs: 4, Devices: 15}}}},
			Promises: []scheduler.Promise{promised}, Reserved: []scheduler.Reserved{reserved("q", "n1", 4, 2)}})
		require.NoError(t, err)
		d := s.Cycle(noon)
		require.Equal(t, map[string]string{"j": "q"}, claims(d), name)
		if preempting {
			require.Len(t, d.Promised, 1, name)
			require.Equal(t, noon.Add(hours(2)), d.Promised[0].From, "when the claim is over, as n0 is promised")
		} else {
			require.Empty(t, d.Promised, name)
		}
		require.True(t, s.Unclaim("j", noon))
		require.Contains(t, s.Snapshot().Promises, promised, name)
	}
}

// What a job has claimed that has it leaves the promise that it had to others.
func TestAClaimEndsThePromise(t *testing.T) {
	t.Parallel()
	s, err := scheduler.Restore(scheduler.Policy{Promises: 1}, scheduler.Snapshot{
		Nodes:   []placement.Node{{ID: "n0", Kind: placement.Kind{GPUs: 4}}, {ID: "n1", Kind: placement.Kind{GPUs: 4}}},
		Waiting: []scheduler.Job{want("j", 4, 2, by("u")), want("k", 4, 2, by("v"))},
		Promises: []scheduler.Promise{{Promised: placement.Promised{ID: "j", From: noon.Add(hours(1)),
			Until: noon.Add(hours(3)), Spots: placement.Placement{{Node: "n0", GPUs: 4}}}}},
		Reserved: []scheduler.Reserved{reserved("q", "n1", 4, 2)}})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"j": "q"}, claims(s.Cycle(noon)))
	require.Equal(t, map[string]string{"k": ""}, claims(s.Cycle(noon)))
}

// Of jobs that are alike one is refused what it would claim: the others, and those that may run for longer, do not try.
func TestJobsLikeTheOneThatWasRefusedClaimNothing(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{}, 1)
	s.Reserve(reserved("q", "n0", 4, 9))
	submit(t, s, want("j", 4, 2, by("u")))
	require.Equal(t, map[string]string{"j": "q"}, claims(s.Cycle(noon)))
	require.True(t, s.Unclaim("j", noon))
	require.True(t, s.Cancel("j"))
	for _, other := range []struct {
		scheduler.Job
		claims string
	}{{want("k", 4, 2, by("u")), ""}, {want("l", 4, 3, by("u")), ""}, {want("m", 2, 1, by("u")), "q"},
		{want("n", 2, 2, by("u")), "q"}} {
		submit(t, s, other.Job)
		require.Equal(t, map[string]string{other.ID: other.claims}, claims(s.Cycle(noon)))
		require.True(t, s.Finish(other.ID, noon))
	}
}

// Whatever is reserved and whoever waits: nobody claims another tenant's, or a colleague's that is not for all; of each
// reservation no GPU is claimed twice; and what is claimed is on its nodes.
func TestClaimsAreSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		all := map[string]scheduler.Reserved{}
		for i := range rapid.IntRange(1, 4).Draw(t, "reservations") {
			r := scheduler.Reserved{ID: fmt.Sprint("r", i), For: reservation.Claimants{
				ForJobs: rapid.SampledFrom([]reservation.ForJobs{reservation.NoJobs, reservation.OwnJobs,
					reservation.OrganizationJobs}).Draw(t, "for"),
				Maker: reservation.Submitter{OrganizationID: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "whose"),
					UserID: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "who")}},
				Until: w.now.Add(hours(float64(rapid.IntRange(0, 6).Draw(t, "until"))))}
			for n := range rapid.IntRange(1, len(w.s.Snapshot().Nodes)).Draw(t, "nodes") {
				r.Spots = append(r.Spots, placement.Spot{Node: fmt.Sprint("n", n), GPUs: rapid.IntRange(1, 4).Draw(t, "GPUs")})
			}
			all[r.ID] = r
			w.s.Reserve(r)
		}
		for range rapid.IntRange(1, 12).Draw(t, "jobs") {
			w.submit(t)
		}
		left := map[string]int{}
		for _, start := range w.s.Cycle(w.now).Starts {
			if start.Claims == "" {
				continue
			}
			r, j := all[start.Claims], w.jobs[start.Job]
			require.True(t, r.For.Serves(reservation.Submitter{OrganizationID: j.Tenant, UserID: j.User, KeyID: j.Key}))
			require.True(t, r.Until.After(w.now))
			requireGang(t, j, start.Spots)
			for _, spot := range start.Spots {
				left[r.ID+spot.Node] += spot.GPUs
				require.LessOrEqual(t, left[r.ID+spot.Node], gpusOf(r, spot.Node))
			}
		}
		_, err := scheduler.Restore(w.policy, w.s.Snapshot())
		require.NoError(t, err, "no GPU is in two hands")
	})
}

func gpusOf(r scheduler.Reserved, node string) (n int) {
	for _, spot := range r.Spots {
		if spot.Node == node {
			n += spot.GPUs
		}
	}
	return n
}
