package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// Story tells the journal as it grows.
type Story struct {
	Store ledger.Store
	Tell  func(at time.Time, who, text string, weight Weight)
}

// Weight says how much a step of the story matters.
type Weight int

// The weights.
const (
	Detail Weight = iota
	Step
	Good
	Bad
)

// every is how often the journal is looked at.
const every = 200 * time.Millisecond

// Run tells everything that happens from now on.
func (s *Story) Run(ctx context.Context) error {
	after, err := s.lastEvent(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		events, err := s.readEvents(ctx, after)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("reading the journal: %w", err)
		}
		for _, e := range events {
			after = e.Seq
			s.tellEvent(e)
		}
	}
}

func (s *Story) readEvents(ctx context.Context, after int64) (events []ledger.Event, err error) {
	err = s.Store.Read(ctx, func(r ledger.Reader) error {
		events, err = r.Events(ledger.Scope{All: true}, ledger.EventFilter{After: after}, 500)
		return err
	})
	return events, err
}

// lastEvent finds the end of the journal that is there already.
func (s *Story) lastEvent(ctx context.Context) (int64, error) {
	var after int64
	for {
		events, err := s.readEvents(ctx, after)
		if err != nil {
			return 0, fmt.Errorf("reading the journal: %w", err)
		}
		if len(events) == 0 {
			return after, nil
		}
		after = events[len(events)-1].Seq
	}
}

// untold are steps that say nothing to a watcher.
var untold = map[string]bool{"node.requested": true, "node.provisioning": true, "node.draining": true,
	"allocation.releasing": true}

func (s *Story) tellEvent(e ledger.Event) {
	who, what, ok := strings.Cut(e.Type, ".")
	if !ok || untold[e.Type] || (who != "node" && who != "reservation" && who != "allocation") {
		return
	}
	weight := Step
	switch {
	case e.Type == "allocation.active" && strings.Contains(e.Message, "zero wait"):
		weight = Good
	case what == "degraded" || what == "failed" || what == "lost" || e.Type == "reservation.expired" ||
		e.Type == "allocation.pending":
		weight = Bad
	case what == "booting" || what == "gone" || what == "cancelled":
		weight = Detail
	}
	text := fmt.Sprintf("%-14s %s  %s", what, shortID(e.Subject), e.Message)
	if e.Message == "" && e.Reason != "" {
		text = fmt.Sprintf("%-14s %s  %s", what, shortID(e.Subject), strings.ReplaceAll(e.Reason, "_", " "))
	}
	s.Tell(e.At, who, text, weight)
}

// shortID is the end of an id, enough to tell a few apart.
func shortID(id string) string { return "…" + id[max(0, len(id)-4):] }
