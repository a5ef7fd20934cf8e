package fault

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Planned is one fault of a schedule.
type Planned struct {
	At   time.Duration // after the start
	Kind Kind
	For  time.Duration
	Seed uint64 // of what else chance decides about it
}

const (
	// meanGap is between two faults, on average; the shortest is a fifth of it.
	meanGap = 1850 * time.Millisecond
	// quietEnd is a part of the time in which no fault begins.
	quietEnd = 5 * time.Second
)

// Schedule is what a seed does to a site in so long, in which every fault also
// ends. It is a list of all kinds in a random order, then of any; so a run that
// is long enough has all of them.
func Schedule(seed uint64, length time.Duration) []Planned {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a run is to be repeatable
	var plan []Planned
	var order []Kind
	for at := meanGap; at < length-quietEnd; at += drawGap(r) {
		if len(order) == 0 {
			order = shuffleKinds(r, len(plan) > 0)
		}
		kind := order[0]
		order = order[1:]
		plan = append(plan, Planned{At: at, Kind: kind, For: min(kinds[kind].drawDuration(r), length-at),
			Seed: r.Uint64()})
	}
	plan = append(plan, freezes(seed, length)...)
	slices.SortStableFunc(plan, func(a, b Planned) int { return cmp.Compare(a.At, b.At) })
	return plan
}

// freezes has a daemon freeze once in each quarter of an hour that a run lasts. Chance of its own decides, so that a
// seed does everything else as it would without.
func freezes(seed uint64, length time.Duration) (all []Planned) {
	r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a run is to be repeatable
	for from := time.Duration(0); from+freezeEach <= length; from += freezeEach {
		all = append(all, Planned{At: from + time.Duration(r.Int64N(int64(freezeEach-frozen))), Kind: freeze, For: frozen,
			Seed: r.Uint64()})
	}
	return all
}

// shuffleKinds is every kind in a random order: once at first, and later as often as its
// weight says.
func shuffleKinds(r *rand.Rand, weighted bool) []Kind {
	var all []Kind
	for _, kind := range Kinds() {
		times := 1
		if weighted {
			times = kinds[kind].weight
		}
		all = append(all, slices.Repeat([]Kind{kind}, times)...)
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func drawGap(r *rand.Rand) time.Duration {
	return meanGap/5 + time.Duration(r.ExpFloat64()*float64(meanGap)*0.8)
}

func (n nature) drawDuration(r *rand.Rand) time.Duration {
	return n.shortest + time.Duration(r.Int64N(int64(n.longest-n.shortest)+1))
}
