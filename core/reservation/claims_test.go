package reservation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
			require.Equal(t, tc.want[i], r.Serves(who), "%s: %+v", name, who)
		}
	}
}

// A key without a person claims nothing for being of nobody, as other reservations are.
func TestNobodyIsNoPerson(t *testing.T) {
	t.Parallel()
	r := reservation.Reservation{OrganizationID: "org_1", MadeBy: "key_1", ForJobs: reservation.OwnJobs}
	require.False(t, r.Serves(reservation.Submitter{OrganizationID: "org_1", KeyID: "key_2"}))
}

// What is carved out and what is left are what there was: each GPU once, and the cost to the micro-dollar.
func TestCarvedPartsAreTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, "reserved", 4, 8)
		r := reservation.Reservation{ID: "rsv_1", Version: 3, Shape: shape,
			Slots: rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "slots")[:shape.Nodes],
			Cost:  money.MicroUSD(rapid.IntRange(0, 1_000_000).Draw(t, "cost"))}
		asks := drawShape(t, "asked", shape.Nodes, shape.PerNode)
		slots := rapid.Permutation(r.Slots).Draw(t, "on")[:asks.Nodes]
		made := 0
		rest, part, ok := r.Carve(asks, slots, func() string { made++; return fmt.Sprint("new_", made) })
		left := gpusOn(r)
		for i, slot := range slots {
			left[slot] -= asks.On(i)
		}
		fits := !slices.ContainsFunc(r.Slots, func(slot int) bool { return left[slot] < 0 })
		require.Equal(t, fits, ok)
		if !ok {
			return
		}
		require.Equal(t, asks, part.Shape)
		require.Equal(t, slots, part.Slots)
		cost, ids := part.Cost, map[string]bool{part.ID: true}
		for _, x := range rest {
			require.True(t, x.Shape.Valid())
			for slot, n := range gpusOn(x) {
				left[slot] -= n
			}
			cost, ids[x.ID] = cost+x.Cost, true
		}
		for slot, n := range left {
			require.Zero(t, n, "slot %d", slot)
		}
		require.Equal(t, r.Cost, cost)
		require.Len(t, ids, len(rest)+1)
		require.True(t, ids["rsv_1"], "one of them is what it was")
		if len(rest) > 0 {
			require.Equal(t, "rsv_1", rest[0].ID)
			require.Equal(t, 3, rest[0].Version)
			require.Zero(t, part.Version)
		}
	})
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
