package learned

import (
	"maps"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// SourceLearned is what is known of one alternate of a pool. Created and Removed
// of its supply stay empty: those are counted of the pool.
type SourceLearned struct {
	Boot BootTimes
	Supply
}

// Choose returns the source that a node needed at deadline is asked of, by
// FailoverOrder, and what is learned with that source's boots and supply in
// place of the pool's own. A pool with one source has no choice.
func (l Learned) Choose(p capacity.Pool, deadline, now time.Time) (capacity.Offering, Learned) {
	if len(p.Alternates) == 0 {
		return p.Offering(), l
	}
	sources := p.Offerings()
	offers := make([]Offering, len(sources))
	for i, s := range sources {
		known := l.Of(p, s)
		offers[i] = Offering{ID: s.Key(), Price: s.Price, Boot: known.Boot, Supply: known.Supply}
	}
	best := FailoverOrder(offers, deadline, now)[0].ID
	for _, s := range sources {
		if s.Key() == best {
			known := l.Of(p, s)
			known.Created, known.Removed = l.Created, l.Removed
			l.Boot, l.Supply = known.Boot, known.Supply
			return s, l
		}
	}
	return p.Offering(), l
}

// Of returns what is known of one of the pool's sources.
func (l Learned) Of(p capacity.Pool, s capacity.Offering) SourceLearned {
	if s.Key() == p.Offering().Key() {
		return SourceLearned{Boot: l.Boot, Supply: l.Supply}
	}
	if known, ok := l.Sources[s.Key()]; ok {
		return known
	}
	for _, a := range p.Alternates {
		if a.Key() == s.Key() {
			return SourceLearned{Boot: BootTimes{Prior50: a.Boot50, Prior95: a.Boot95}}
		}
	}
	return SourceLearned{Boot: BootTimes{Prior50: l.Boot.Prior50, Prior95: l.Boot.Prior95}}
}

// Booted returns what is learned after a node of the source became ready.
func (l Learned) Booted(p capacity.Pool, s capacity.Offering, took time.Duration, now time.Time) Learned {
	return l.changeSource(p, s, func(k SourceLearned) SourceLearned {
		return SourceLearned{Boot: k.Boot.Learn(took), Supply: k.Supply.Ready(now)}
	})
}

// Served returns what is learned after a node of the source became ready and nobody
// saw when: that it gives nodes, and nothing of how long it takes.
func (l Learned) Served(p capacity.Pool, s capacity.Offering, now time.Time) Learned {
	return l.changeSource(p, s, func(k SourceLearned) SourceLearned {
		return SourceLearned{Boot: k.Boot, Supply: k.Supply.Ready(now)}
	})
}

// Refused returns what is learned after a node that was asked of the source at
// asked was refused, or given up before it was ready: see Supply.Failed.
func (l Learned) Refused(p capacity.Pool, s capacity.Offering, asked, now time.Time, ttl time.Duration) Learned {
	return l.changeSource(p, s, func(k SourceLearned) SourceLearned {
		return SourceLearned{Boot: k.Boot, Supply: k.Supply.Failed(asked, now, ttl)}
	})
}

// FailedGate returns what is learned after a machine that was asked of the source at
// asked did not pass the health gate: see Supply.FailedGate.
func (l Learned) FailedGate(p capacity.Pool, s capacity.Offering, asked, now time.Time, ttl time.Duration,
	fault string) Learned {
	return l.changeSource(p, s, func(k SourceLearned) SourceLearned {
		return SourceLearned{Boot: k.Boot, Supply: k.Supply.FailedGate(asked, now, ttl, fault)}
	})
}

// RetryStopped returns what is learned after a person changed the pool: sources
// that were stopped are asked again.
func (l Learned) RetryStopped(p capacity.Pool) Learned {
	for _, s := range p.Offerings() {
		if known := l.Of(p, s); known.Stopped() != "" {
			l = l.changeSource(p, s, func(k SourceLearned) SourceLearned {
				return SourceLearned{Boot: k.Boot, Supply: k.Supply.clearFailures()}
			})
		}
	}
	return l
}

func (l Learned) changeSource(p capacity.Pool, s capacity.Offering, to func(SourceLearned) SourceLearned) Learned {
	next := to(l.Of(p, s))
	if s.Key() == p.Offering().Key() {
		l.Boot, l.Supply = next.Boot, next.Supply
		return l
	}
	l.Sources = maps.Clone(l.Sources)
	if l.Sources == nil {
		l.Sources = map[string]SourceLearned{}
	}
	l.Sources[s.Key()] = next
	return l
}
