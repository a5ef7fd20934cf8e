package wait_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/wait"
)

func TestWaitSaysWhatItRestsOn(t *testing.T) {
	t.Parallel()
	boot := learned.BootTimes{Prior50: 2 * time.Minute, Prior95: 4 * time.Minute}
	seen := boot.Learn(time.Minute).Learn(3 * time.Minute)
	held := []wait.Place{{Room: time.Hour, Holds: []wait.Hold{{Age: 30 * time.Minute, Lease: time.Hour}}}}
	booked := []wait.Place{{Room: time.Hour, Fixed: time.Hour}}
	used := learned.LeaseUse{}.Learn(40*time.Minute, time.Hour).Learn(time.Hour, time.Hour).Learn(10*time.Minute,
		time.Hour)
	for name, c := range map[string]struct {
		facts   wait.Facts
		basis   string
		samples int
	}{
		"nothing":            {wait.Facts{Boot: seen}, "now", 0},
		"a boot, never seen": {wait.Facts{Missing: 1, Boot: boot}, "prior", 0},
		"boots": {wait.Facts{Ages: []time.Duration{0, time.Second}, Boot: seen}, "boot_times",
			2},
		"a booking's end":        {wait.Facts{Places: booked, Need: 1, Boot: seen}, "calendar", 0},
		"a lease of unknown use": {wait.Facts{Places: held, Need: 1}, "calendar+prior", 0},
		"a lease, then a boot": {wait.Facts{Places: held, Need: 1, Leases: used, Missing: 1, Boot: seen},
			"calendar+lease_use+boot_times", 2},
		"a lease, then a new thing": {wait.Facts{Places: held, Need: 1, Leases: used, Missing: 1, Boot: boot},
			"calendar+lease_use+prior", 0},
	} {
		e := wait.EstimateFrom(c.facts)
		require.Equal(t, c.basis, e.Basis, name)
		require.Equal(t, c.samples, e.Samples, name)
	}
	held[0].Room = 30 * time.Minute
	e := wait.EstimateFrom(wait.Facts{Places: held, Need: 1, Leases: used})
	require.Less(t, e.P10, e.P90)
	require.LessOrEqual(t, e.P90, 30*time.Minute, "a lease never runs over its end")
	blocked := wait.EstimateFrom(wait.Facts{Missing: 1, Boot: boot, Blocked: time.Hour})
	require.GreaterOrEqual(t, blocked.P10, time.Hour)
}

func TestWaitIsOrderedAndShrinksWithAge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		seconds := func(label string, from, to int) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(r, label)) * time.Second
		}
		f := wait.Facts{Missing: rapid.IntRange(0, 3).Draw(r, "missing"), Blocked: seconds("blocked", 0, 600),
			Cleaning: seconds("cleaning", 0, 1800)}
		f.Boot.Prior50 = seconds("p50", 1, 600)
		f.Boot.Prior95 = f.Boot.Prior50 + seconds("p95", 0, 600)
		for range rapid.IntRange(0, 30).Draw(r, "boots") {
			f.Boot = f.Boot.Learn(seconds("boot", 1, 900))
			f.Leases = f.Leases.Learn(seconds("held", 0, 3600), time.Hour)
		}
		for range rapid.IntRange(0, 3).Draw(r, "coming") {
			f.Ages = append(f.Ages, seconds("age", 0, 2000))
		}
		for range rapid.IntRange(0, 4).Draw(r, "places") {
			p := wait.Place{Fixed: seconds("fixed", 0, 7200)}
			p.Room = p.Fixed
			for range rapid.IntRange(0, 2).Draw(r, "leases") {
				h := wait.Hold{Age: seconds("held for", 0, 3600), Lease: time.Hour}
				p.Holds, p.Room = append(p.Holds, h), max(p.Room, h.Lease-h.Age+f.Cleaning)
			}
			f.Places = append(f.Places, p)
		}
		f.Need = rapid.IntRange(0, len(f.Places)).Draw(r, "need")
		e := wait.EstimateFrom(f)
		require.Equal(r, e, wait.EstimateFrom(f))
		require.GreaterOrEqual(r, e.P10, time.Duration(0))
		require.LessOrEqual(r, e.P10, e.P50)
		require.LessOrEqual(r, e.P50, e.P90)
		if f.Need > 0 {
			f.Need--
			fewer := wait.EstimateFrom(f)
			require.LessOrEqual(r, fewer.P50, e.P50, "one place less is never later")
			require.LessOrEqual(r, fewer.P90, e.P90)
			f.Need++
		}
		f.Missing++
		more := wait.EstimateFrom(f)
		require.GreaterOrEqual(r, more.P50, e.P50, "one node more is never sooner")
		require.GreaterOrEqual(r, more.P90, e.P90)
	})
}

// A steady source: whatever a boot's age at the moment of asking, what is left is
// below the p90 in nine cases of ten, and below the p10 in one.
func TestTheIntervalCovers(t *testing.T) {
	t.Parallel()
	for name, seed := range map[string]uint64{"one node": 1, "four nodes": 4} {
		nodes := int(seed)
		chance := rand.New(rand.NewPCG(seed, 7))
		boots, source := learned.BootTimes{Prior50: time.Minute, Prior95: 5 * time.Minute},
			noisyBoots(seed, 3*time.Minute)
		asked, below10, below90 := 0, 0, 0
		for n := range 1500 {
			f := wait.Facts{Boot: boots}
			left := time.Duration(0)
			age := time.Duration(chance.Float64() * float64(3*time.Minute))
			for range nodes {
				if took := source(); took > age {
					f.Ages, left = append(f.Ages, age), max(left, took-age)
					boots = boots.Learn(took)
				}
			}
			if n < 50 || len(f.Ages) == 0 {
				boots = boots.Learn(source())
				continue
			}
			boots = boots.Learn(source())
			e := wait.EstimateFrom(f)
			asked++
			if left <= e.P10 {
				below10++
			}
			if left <= e.P90 {
				below90++
			}
		}
		require.GreaterOrEqual(t, float64(below90)/float64(asked), 0.85, name)
		require.LessOrEqual(t, float64(below10)/float64(asked), 0.20, name)
		require.Greater(t, below10, 0, "%s: the interval is not empty", name)
	}
}
