package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// rounds is how often a prior is learned from each trace.
const rounds = 2

// lesson is a trace that a prior may be learned from.
type lesson struct {
	name  string
	trace backtest.Trace
	drawn bool // a regime, from which no prior is learned
}

// learnPrior replays the lessons, in their order and as often as rounds says, to
// one fleet that holds nothing. No tenant is known from another replay. The same
// lessons give the same prior.
func learnPrior(ctx context.Context, lessons []lesson) (forecast.Prior, error) {
	fleet := forecast.NewOnlineModel(forecast.Prior{}, forecast.Teaching())
	for round := range rounds {
		for _, l := range lessons {
			p := forecast.Prices{Boot: 300}
			_, err := backtest.Run(l.trace, backtest.Options{
				Boot: 300, Progress: func(int, int) error { return ctx.Err() },
				Policy: func(tenant int) backtest.Policy {
					return newForewarned(fleet, fmt.Sprintf("%s %d %d", l.name, round, tenant), p)
				},
			})
			if err != nil {
				return forecast.Prior{}, fmt.Errorf("learning from %s: %w", l.name, err)
			}
		}
	}
	return fleet.Prior(), nil
}

// priorOf returns what the policies know before a trace, and where from. What was
// learned from a trace would be no forecast of it: with several traces, each gets
// what the others teach; a regime gets the built-in one.
func priorOf(ctx context.Context, from string, own lesson, lessons []lesson) (forecast.Prior, string, error) {
	var others []lesson
	var names []string
	for _, l := range lessons {
		if l.name != own.name && !l.drawn && !own.drawn {
			others = append(others, l)
			names = append(names, l.name)
		}
	}
	if from == "" && len(others) > 0 {
		p, err := learnPrior(ctx, others)
		return p, "learned from " + strings.Join(names, " and "), err
	}
	switch from {
	case "", "builtin":
		return forecast.BuiltIn(), "built in", nil
	case "none":
		return forecast.Prior{}, "none", nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return forecast.Prior{}, "", fmt.Errorf("reading the prior: %w", err)
	}
	p, err := forecast.ParsePrior(data)
	return p, from, err
}

// writePrior learns a prior from all traces, the one with the most jobs first, and
// writes it to a file.
func writePrior(ctx context.Context, to string, lessons []lesson) error {
	lessons = slices.Clone(lessons)
	slices.SortStableFunc(lessons, func(a, b lesson) int { return len(b.trace.Jobs) - len(a.trace.Jobs) })
	p, err := learnPrior(ctx, lessons)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, p.Bytes(), 0o644); err != nil { //nolint:gosec // it holds nothing secret
		return fmt.Errorf("writing the prior: %w", err)
	}
	return nil
}

// teachPriors gives every scenario its prior, if any policy asks for one.
func (c config) teachPriors(ctx context.Context, scenarios []*scenario, traces []lesson) error {
	if c.policies != nil && !slices.Contains(c.policies, "forewarm") {
		return nil
	}
	type answer struct {
		prior forecast.Prior
		from  string
		err   error
	}
	answers := make([]answer, len(traces))
	var learners sync.WaitGroup
	for i, l := range traces {
		learners.Go(func() {
			a := &answers[i]
			a.prior, a.from, a.err = priorOf(ctx, c.prior, l, traces)
		})
	}
	learners.Wait()
	for i, a := range answers {
		if a.err != nil {
			return a.err
		}
		for _, s := range scenarios {
			if s.of == traces[i].name {
				s.prior, s.learned = a.prior, a.from
			}
		}
	}
	return nil
}

// wantsFamily reports whether a family is to be run.
func (c config) wantsFamily(f family) bool {
	if c.policies == nil {
		return (c.ablate || !f.ablation) && (c.regret || !f.regret)
	}
	return slices.Contains(c.policies, f.name)
}
