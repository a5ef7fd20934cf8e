package reservation_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
)

// What a person reserved is for the person's jobs, unless that was said otherwise; what is warmed ahead is for
// everybody's of the organization, and nothing for anybody's of another one.
func TestWhoseJobsClaim(t *testing.T) {
	t.Parallel()
	own := reservation.Submitter{OrganizationID: "org_1", UserID: "usr_1", KeyID: "key_2"}
	ownKey := reservation.Submitter{OrganizationID: "org_1", KeyID: "key_1"}
	colleague := reservation.Submitter{OrganizationID: "org_1", UserID: "usr_2", KeyID: "key_3"}
	stranger := reservation.Submitter{OrganizationID: "org_2", UserID: "usr_1", KeyID: "key_1"}
	for name, tc := range map[string]struct {
		of   reservation.Reservation
		want []bool // own, ownKey, colleague, stranger
	}{
		"a person's": {reservation.Reservation{Origin: reservation.FromPerson, Class: reservation.Guaranteed},
			[]bool{true, true, false, false}},
		"a person's for nobody": {reservation.Reservation{ForJobs: reservation.NoJobs}, []bool{false, false, false, false}},
		"a person's for all": {reservation.Reservation{ForJobs: reservation.OrganizationJobs},
			[]bool{true, true, true, false}},
		"a schedule's": {reservation.Reservation{Origin: reservation.FromSchedule, Class: reservation.Guaranteed},
			[]bool{true, true, true, false}},
		"an agent's": {reservation.Reservation{Origin: reservation.FromAgent, Class: reservation.Speculative},
			[]bool{true, true, true, false}},
	} {
		tc.of.OrganizationID, tc.of.UserID, tc.of.MadeBy = "org_1", "usr_1", "key_1"
		r, err := reservation.New(tc.of, reservation.Booked, time.Unix(0, 0))
		require.NoError(t, err)
		for i, who := range []reservation.Submitter{own, ownKey, colleague, stranger} {
			require.Equal(t, tc.want[i], r.Claimants().Serves(who), "%s: %+v", name, who)
		}
	}
}

// A key without a person claims nothing for being of nobody, as other reservations are.
func TestNobodyIsNoPerson(t *testing.T) {
	t.Parallel()
	r := reservation.Reservation{OrganizationID: "org_1", MadeBy: "key_1", ForJobs: reservation.OwnJobs}
	require.False(t, r.Claimants().Serves(reservation.Submitter{OrganizationID: "org_1", KeyID: "key_2"}))
	r.MadeBy = ""
	require.False(t, r.Claimants().Serves(reservation.Submitter{OrganizationID: "org_1"}), "nor is no key one")
}

// What is carved out and what is left are what there was: each GPU once, and the cost to the micro-dollar.
func TestCarvedPartsAreTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, "reserved", 4, 8)
		r := reservation.Reservation{ID: "rsv_1", Version: 3, Shape: shape,
			Slots: rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "slots")[:shape.Nodes],
			Cost:  money.MicroUSD(rapid.IntRange(0, 1_000_000).Draw(t, "cost"))}
		take, left, taken := map[int]int{}, gpusOn(r), 0
		for _, slot := range rapid.SliceOfDistinct(rapid.IntRange(0, 4), rapid.ID).Draw(t, "on") {
			take[slot] = rapid.IntRange(0, shape.PerNode).Draw(t, "takes")
			left[slot] -= take[slot]
			taken += take[slot]
		}
		made := 0
		rest, parts, ok := r.Carve(take, func() string { made++; return fmt.Sprint("new_", made) })
		fits := taken > 0
		for _, n := range left {
			fits = fits && n >= 0
		}
		require.Equal(t, fits, ok)
		if !ok {
			return
		}
		require.Equal(t, withoutZeros(take), sumOf(parts))
		require.Equal(t, withoutZeros(left), sumOf(rest))
		cost, ids := money.MicroUSD(0), map[string]bool{}
		for i, x := range slices.Concat(rest, parts) {
			require.True(t, x.Shape.Valid())
			require.Equal(t, "rsv_1", x.PartOf, "it says of what it is a part")
			require.Equal(t, "rsv_1", x.Whole())
			require.GreaterOrEqual(t, x.Cost, money.MicroUSD(0))
			require.Equal(t, i == 0, x.ID == "rsv_1", "one of them is what it was: of what is left, if anything is")
			require.Equal(t, i == 0, x.Version == 3)
			cost, ids[x.ID] = cost+x.Cost, true
		}
		require.Equal(t, r.Cost, cost)
		require.Len(t, ids, len(rest)+len(parts))
	})
}

// A part that is a shape is one row, also where its last node has fewer GPUs than the others.
func TestAPartIsAsFewRowsAsItCanBe(t *testing.T) {
	t.Parallel()
	r := reservation.Reservation{ID: "r", Shape: capacity.Shape{Nodes: 3, PerNode: 8}, Slots: []int{4, 1, 6}, Cost: 2400}
	rest, parts, ok := r.Carve(map[int]int{4: 3, 1: 8, 6: 8}, func() string { return "p" })
	require.True(t, ok)
	require.Len(t, parts, 1)
	require.Equal(t, capacity.Shape{Nodes: 3, PerNode: 8, Short: 5}, parts[0].Shape)
	require.Equal(t, []int{1, 6, 4}, parts[0].Slots)
	require.Len(t, rest, 1)
	require.Equal(t, []int{4}, rest[0].Slots)
	require.EqualValues(t, 500, rest[0].Cost)
	_, parts, _ = rest[0].Carve(map[int]int{4: 1}, func() string { return "q" })
	require.Equal(t, "r", parts[0].PartOf, "what is left of a part is of the whole, too")
}

// What is left of a reservation after an allocation is promised as the reservation was, and nothing of it is warm yet.
func TestWhatIsLeftAfterAnAllocation(t *testing.T) {
	t.Parallel()
	at := func(h int) time.Time { return now.Add(time.Duration(h) * time.Hour) }
	r, err := reservation.New(reservation.Reservation{ID: "r", OrganizationID: "org_1", PoolID: "pol_1", Name: "nightly",
		Class: reservation.Guaranteed, Origin: reservation.FromSchedule, MadeBy: "sch_1", UserID: "usr_1",
		Workload: capacity.Batch, Window: calendar.Interval{Start: at(1), End: at(8)},
		Shape: capacity.Shape{Nodes: 2, PerNode: 8}, Slots: []int{0, 1}, ForJobs: reservation.OrganizationJobs,
		ReasonCode: "code", Probability: 0.5, Cost: 100}, reservation.Booked, now)
	require.NoError(t, err)
	want := r
	for _, e := range []reservation.Event{reservation.Warm, reservation.BecomeReady, reservation.Claim} {
		r, err = r.Apply(e, string(e), at(1))
		require.NoError(t, err)
	}
	r.JobID, r.Degraded = "job_1", true
	used := reservation.Used{By: "alc_1", Shape: capacity.Shape{Nodes: 1, PerNode: 3}, Slots: []int{1}}
	later, ok := r.After(used, at(3), "r2", at(2))
	require.True(t, ok)
	want.ID, want.PartOf, want.Awaits, want.Shape, want.Slots, want.Cost = "r2", "r", "alc_1", used.Shape, []int{1}, 0
	want.Window.Start, want.CreatedAt, want.BookedAt = at(3), at(2), at(2)
	require.Equal(t, want, later)
	_, ok = r.After(used, at(8).Add(-time.Minute+time.Second), "r2", at(2))
	require.False(t, ok, "nobody could use it")
}

func sumOf(rows []reservation.Reservation) map[int]int {
	all := map[int]int{}
	for _, r := range rows {
		for slot, n := range gpusOn(r) {
			all[slot] += n
		}
	}
	return all
}

func withoutZeros(all map[int]int) map[int]int {
	maps.DeleteFunc(all, func(_, n int) bool { return n == 0 })
	return all
}

func drawShape(t *rapid.T, name string, nodes, perNode int) capacity.Shape {
	s := capacity.Shape{Nodes: rapid.IntRange(1, nodes).Draw(t, name+" nodes"),
		PerNode: rapid.IntRange(1, perNode).Draw(t, name+" per node")}
	if s.Nodes > 1 {
		s.Short = rapid.IntRange(0, s.PerNode-1).Draw(t, name+" short")
	}
	return s
}

func gpusOn(r reservation.Reservation) map[int]int {
	on := map[int]int{}
	for i, slot := range r.Slots {
		on[slot] = r.Shape.On(i)
	}
	return on
}
