package forecast

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is hidden must not matter: two pasts that differ in nothing else look the
// same.
func TestHiddenPartsAreNotSeen(t *testing.T) {
	t.Parallel()
	see := func(now int64, change func(*past), hidden ...Part) look {
		var p past
		p.submit(origin, 2)
		p.end(origin+60, 2, 60)
		p.fade(now)
		change(&p)
		var l look
		p.see(now, &l)
		for _, part := range hidden {
			l.hide(part)
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
	whole, now := class(t, NewFleet(Prior{}), 24)
	without, _ := class(t, NewFleet(Prior{}, Without(Calibration)), 24)
	require.NotEqual(t, whole.Look(now).Chance(1, 600), without.Look(now).Chance(1, 600))
}
