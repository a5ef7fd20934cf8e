package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// kind is how a user submits.
type kind string

// The ways of submitting.
const (
	batch       kind = "sbatch"
	array       kind = "array"
	gang        kind = "gang"
	interactive kind = "salloc"
	direct      kind = "srun"
)

// submission is what a user does once. Its times are those of the accelerated week.
type submission struct {
	name   string
	at     time.Time
	kind   kind
	nodes  int
	gpus   int           // on each node, of each task of an array
	tasks  int           // of an array; else 1
	length time.Duration // of each task's work
}

// People work from opening to closing; there are no jobs in the night.
const (
	opening = 9 * time.Hour
	closing = 18 * time.Hour
)

// perNode is how many GPUs a node has.
const perNode = 4

// makeWeek makes up what the users of a small cluster do in the week that begins at
// monday. On working days people sit down at any time, submit something, look at what
// came of it, and submit again, a few times each; on the others that is rare. Beside
// them, an array and trainings on two nodes come each working day at about the same
// minute.
func makeWeek(seed uint64, number int, monday time.Time) []submission {
	random := rand.New(rand.NewPCG(seed, uint64(number))) //nolint:gosec // a made-up week, the same each time
	var week []submission
	for day := range 7 {
		midnight := monday.AddDate(0, 0, day)
		sessions := random.IntN(3)
		if day < 5 {
			sessions = 18 + random.IntN(8)
			week = append(week, dailyWork(random, midnight)...)
		}
		for range sessions {
			week = append(week, session(random, midnight)...)
		}
	}
	slices.SortStableFunc(week, func(a, b submission) int { return a.at.Compare(b.at) })
	for i := range week {
		week[i].name = fmt.Sprintf("w%d-%03d-%s", number, i, week[i].kind)
	}
	return week
}

// dailyWork is what is done on each working day, never at quite the same minute.
func dailyWork(random *rand.Rand, midnight time.Time) []submission {
	var work []submission
	for _, at := range []time.Duration{9*time.Hour + 5*time.Minute, 13*time.Hour + 30*time.Minute} {
		work = append(work, submission{kind: array, at: midnight.Add(at + between(random, 0, 6*time.Minute)), nodes: 1,
			gpus: 1, tasks: perNode, length: between(random, 6*time.Minute, 12*time.Minute)})
	}
	for _, at := range []time.Duration{10 * time.Hour, 11*time.Hour + 30*time.Minute, 14 * time.Hour, 16 * time.Hour} {
		work = append(work, submission{kind: gang, at: midnight.Add(at + between(random, 0, 10*time.Minute)), nodes: 2,
			gpus: perNode, tasks: 1, length: between(random, 12*time.Minute, 24*time.Minute)})
	}
	return work
}

// session is what one person does in one go: four jobs or so of one size, each
// submitted when the one before is over and was looked at.
func session(random *rand.Rand, midnight time.Time) []submission {
	kind := []kind{batch, batch, direct, interactive}[random.IntN(4)]
	gpus := []int{perNode, perNode, 2, 1}[random.IntN(4)]
	at := midnight.Add(between(random, opening, closing))
	var work []submission
	for more := true; more && at.Before(midnight.Add(closing)); more = random.IntN(4) > 0 {
		length := between(random, 3*time.Minute, 18*time.Minute)
		work = append(work, submission{kind: kind, at: at, nodes: 1, gpus: gpus, tasks: 1, length: length})
		looks := time.Duration(random.ExpFloat64() * float64(8*time.Minute)).Truncate(time.Second)
		at = at.Add(length + min(looks, time.Hour))
	}
	return work
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least))).Truncate(time.Second)
}
