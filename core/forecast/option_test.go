package forecast

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is hidden must not matter: two pasts that differ in nothing else look the
// same.
func TestHiddenPartsAreNotSeen(t *testing.T) {
	t.Parallel()
	see := func(now int64, change func(*past), hidden ...Part) features {
		var p past
		p.countArrival(origin, 2)
		p.countEnd(origin+60, 2, 60, 0, 0)
		p.fadeTo(now)
		change(&p)
		var l features
		p.fillFeatures(now, &l)
		for b := range l.bin {
			p.seeBin(now, b, &l.bin[b])
		}
		for _, part := range hidden {
			l.hidePart(part)
		}
		return l
	}
	const now = origin + 300
	nothing := func(*past) {}
	for part, change := range map[Part]func(*past){
		HourOfWeek:  func(p *past) { p.Week[now/3600%hourOfWeek] += 9 },
		Hazard:      func(p *past) { p.Submitted, p.EndedAt, p.Big[0] = origin-900, origin-800, origin-700 },
		Calibration: func(p *past) { p.Seen[3] = [4]float32{1, 0.5, 0.4, 0.3} },
	} {
		require.NotEqual(t, see(now, nothing), see(now, change), "part %d: the change must be seen", part)
		require.Equal(t, see(now, nothing, part), see(now, change, part), "part %d", part)
	}
}

func TestAFleetWithoutAPartSaysSomethingElse(t *testing.T) {
	t.Parallel()
	whole, now := runClass(t, NewOnlineModel(Prior{}), 24)
	without, _ := runClass(t, NewOnlineModel(Prior{}, Without(Calibration)), 24)
	require.NotEqual(t, whole.Observe(now).Chance(1, 600), without.Observe(now).Chance(1, 600))
}

// An OnlineModel whose clock runs k times faster says of t seconds what another one says
// of k·t, for the same story told k times slower.
func TestPaceOnlyChangesTheUnit(t *testing.T) {
	t.Parallel()
	const k = 25
	fast, slow := NewOnlineModel(BuiltIn(), Pace(k)), NewOnlineModel(BuiltIn())
	x, err := fast.Tenant("a")
	require.NoError(t, err)
	y, err := slow.Tenant("a")
	require.NoError(t, err)
	now := int64(origin / k)
	for range 200 {
		require.NoError(t, x.Submit(now, 4))
		require.NoError(t, y.Submit(now*k, 4))
		x.Observe(now)
		y.Observe(now * k)
		require.NoError(t, x.End(now+10, 4, now, now))
		require.NoError(t, y.End((now+10)*k, 4, now*k, now*k))
		now += 40
	}
	a, b := x.Observe(now), y.Observe(now*k)
	require.Positive(t, a.Chance(4, 24))
	require.InDelta(t, b.Chance(4, 24*k), a.Chance(4, 24), 1e-12)
	require.InDelta(t, y.Lasts(0.5), x.Lasts(0.5)*k, 1e-9)
	require.Equal(t, y.Next(now*k), x.Next(now)*k, "the first of the looks is a multiple of the pace here")
	held, other := a.Hold(Prices{WaitWorth: 64, Boot: 12}, 0), b.Hold(Prices{WaitWorth: 64, Boot: 12 * k}, 0)
	require.Equal(t, other.Levels, held.Levels)
	require.InDelta(t, other.Saving, held.Saving*k, 1e-6)
	require.InDelta(t, other.Horizon, held.Horizon*k, 1e-9)
}

func TestAStateKeepsItsPace(t *testing.T) {
	t.Parallel()
	f := NewOnlineModel(BuiltIn(), Pace(25))
	_, now := runClass(t, f, 2)
	data, err := f.MarshalJSON()
	require.NoError(t, err)
	back := NewOnlineModel(Prior{})
	require.NoError(t, back.UnmarshalJSON(data))
	require.Equal(t, 25, back.Pace())
	again, err := back.Tenant("a")
	require.NoError(t, err)
	require.ErrorIs(t, again.Submit(now-3600, 1), ErrOrder, "it remembers when, by its own clock")
	require.Error(t, back.UnmarshalJSON([]byte(`{"version":2,"pace":0,"network":"","crosses":"","tenants":{}}`)))
	require.Equal(t, 25, back.Pace(), "what is refused changes nothing")
}
