package runtimes

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/phrase"
)

// What a prediction rests on.
const (
	fewest = 3  // runs; with fewer, less alike ones are asked
	most   = 50 // the newest of them
)

// Prediction is for how long an attempt runs in all: less with a chance of 10, 50 and 90 percent.
type Prediction struct {
	P10, P50, P90 time.Duration
	Basis         string // what it rests on, for people
}

// level is how alike runs are to a subject.
type level struct {
	name, gpus, user bool // are the same
}

// levels are the most alike first: people repeat what they did.
var levels = []level{
	{name: true, gpus: true, user: true},
	{name: true, user: true},
	{name: true, gpus: true},
	{name: true},
	{gpus: true, user: true},
	{gpus: true},
	{},
}

// Predict says for how long an attempt runs, from runs that are as alike to it as there are enough; false:
// there are too few. Of an attempt that runs it asks those that took longer. What has outlived all of them is
// taken to need as long again. What was cut ran at least as long as it did.
func Predict(h History, s Subject) (Prediction, bool) {
	var outlived *Prediction
	for _, l := range levels {
		alike := l.choose(h, s)
		if len(alike) < fewest {
			continue
		}
		longer := slices.DeleteFunc(slices.Clone(alike), func(r Run) bool { return r.Length <= s.Age })
		if len(longer) >= fewest {
			p := quantilesOf(longer)
			p.Basis = l.describe(len(longer), s)
			if s.Age > 0 && len(longer) < len(alike) {
				p.Basis += " that took longer than it has by now"
			}
			return p.within(s), true
		}
		if outlived == nil {
			outlived = &Prediction{P10: s.Age + s.Age/10, P50: 2 * s.Age, P90: unknown,
				Basis: "it has run for longer than most of " + l.describe(len(alike), s)}
		}
	}
	if outlived == nil {
		return Prediction{}, false
	}
	return outlived.within(s), true
}

// choose returns the newest runs of the level.
func (l level) choose(h History, s Subject) []Run {
	from := h.All
	if l.name {
		from = h.Named
		if s.Name == "" {
			return nil
		}
	}
	var out []Run
	for _, r := range from {
		if l.matches(r, s) {
			if out = append(out, r); len(out) == most {
				break
			}
		}
	}
	return out
}

func (l level) matches(r Run, s Subject) bool {
	return (!l.name || r.Name == s.Name) && (!l.gpus || r.GPUs == s.GPUs) && (!l.user || r.User == s.User)
}

// describe says in words which runs they are.
func (l level) describe(n int, s Subject) string {
	text := phrase.Count(n, "run")
	if l.name {
		text += " of " + s.Name
	}
	if l.gpus {
		text += " on " + phrase.Count(s.GPUs, "GPU")
	}
	if l.user {
		return text + " by this person"
	}
	return text + " in this organization"
}

// within returns the prediction between the subject's age and its limit.
func (p Prediction) within(s Subject) Prediction {
	for _, q := range []*time.Duration{&p.P10, &p.P50, &p.P90} {
		if s.Limit > 0 {
			*q = min(*q, s.Limit)
		}
		*q = max(*q, s.Age)
	}
	return p
}

// ForTurn is as how long the attempt counts where it is decided whose turn it is: the median, and at least what runs
// take on average if one in ten takes as long as the upper quantile (Markov's inequality). So that some short runs
// do not hide that others like them are long.
func (p Prediction) ForTurn() time.Duration { return max(p.P50, p.P90/10) }

// Known reports whether there is a prediction.
func (p Prediction) Known() bool { return p.P90 > 0 }
