package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// addEvents shows what happened, and who did it by the name of a key or schedule that the reader may see.
func (v *view) addEvents(r ledger.Reader, s ledger.Scope, recent []ledger.Event) error {
	var actors []string
	for _, e := range recent {
		actors = append(actors, e.Actor)
	}
	known, err := namesOf(r, s, actors)
	if err != nil {
		return err
	}
	for _, e := range recent {
		row := eventRow{At: e.At.UTC().Format("15:04:05"), Type: e.Type, Subject: e.Subject, Message: e.Message,
			Actor: e.Actor}
		if name := known[e.Actor]; name != "" {
			row.Actor = name
		}
		v.Events = append(v.Events, row)
	}
	return nil
}

// makersOf names the keys and schedules that made reservations.
func makersOf(r ledger.Reader, s ledger.Scope, rs []reservation.Reservation) (map[string]string, error) {
	var makers []string
	for _, b := range rs {
		makers = append(makers, b.MadeBy)
	}
	return namesOf(r, s, makers)
}

// namesOf names keys and schedules by their id, as far as the reader may see them.
func namesOf(r ledger.Reader, s ledger.Scope, of []string) (map[string]string, error) {
	schedule := func(id string) bool { return strings.HasPrefix(id, ids.Schedule+"_") }
	distinct := slices.Compact(slices.Sorted(slices.Values(of)))
	names := map[string]string{}
	for noun, wanted := range map[ledger.Noun][]string{
		ledger.NounKey:      slices.DeleteFunc(slices.Clone(distinct), schedule),
		ledger.NounSchedule: slices.DeleteFunc(slices.Clone(distinct), func(id string) bool { return !schedule(id) }),
	} {
		if len(wanted) == 0 {
			continue
		}
		found, err := r.Names(s, noun, wanted)
		if err != nil {
			return nil, fmt.Errorf("reading names: %w", err)
		}
		for _, n := range found {
			names[n.ID] = n.Name
		}
	}
	return names, nil
}

// pausedFor says for whom, the reader among them, speculative reservations are not
// warmed though no pool is paused; empty: they are.
func pausedFor(r ledger.Reader, s ledger.Scope) (string, error) {
	pauses, err := r.Pauses()
	if err != nil {
		return "", fmt.Errorf("reading pauses of pre-warming: %w", err)
	}
	var some []string
	for _, p := range pauses {
		switch {
		case p.OrganizationID == "":
			return "pre-warming is paused for everybody", nil
		case s.All:
			o, err := r.Organization(s, p.OrganizationID)
			if err != nil {
				return "", fmt.Errorf("reading who paused pre-warming: %w", err)
			}
			some = append(some, o.Name)
		case p.OrganizationID == s.OrganizationID:
			return "pre-warming is paused for you", nil
		}
	}
	if len(some) == 0 {
		return "", nil
	}
	return "pre-warming is paused for " + strings.Join(some, ", "), nil
}
