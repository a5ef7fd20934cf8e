package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/server/auth"
)

// served is what the data directory keeps of the last start.
type served struct {
	URL string `json:"url"` // where its API was reached
}

func (a *app) addressFile() string { return filepath.Join(a.cfg.DataDir, "address.json") }

// noteAddress keeps where this start's API is reached, for those who recover a key
// beside it.
func (a *app) noteAddress(url string) error {
	return statefile.Write(a.addressFile(), served{URL: url})
}

// notedAddress is where the API of the last start was reached; empty: there was none.
func (a *app) notedAddress() (string, error) {
	var last served
	_, err := statefile.Read(a.addressFile(), &last)
	return last.URL, err
}

// savedContext says which of the saved contexts opens this installation. One that
// was saved for the address of the start before moves with it.
func (a *app) savedContext(ctx context.Context, contexts Contexts, before, base string) string {
	if before != "" && before != base {
		for _, name := range a.contextsThatOpen(ctx, contexts, before) {
			if err := contexts.Move(name, base); err != nil {
				a.log.Warn("a saved context still has the address of the previous start", "context", name, "error", err)
			}
		}
	}
	names := a.contextsThatOpen(ctx, contexts, base)
	if len(names) == 0 {
		return "no saved key opens this server; to make a new one: forewarm key recover --data-dir " + a.cfg.DataDir
	}
	current, err := contexts.Current()
	if err != nil {
		a.log.Warn("the saved contexts cannot be read", "error", err)
	}
	if slices.Contains(names, current) {
		return fmt.Sprintf("%q is selected, and has a key for this server", current)
	}
	return fmt.Sprintf("%q has a key for this server; to use it: forewarm contexts use %s", names[0],
		access.QuoteWord(names[0]))
}

// contextsThatOpen are the contexts of an address whose key opens this installation, by
// name. Another installation may have had the address before.
func (a *app) contextsThatOpen(ctx context.Context, contexts Contexts, address string) (names []string) {
	saved, err := contexts.Of(address)
	if err != nil {
		a.log.Warn("the saved contexts cannot be read", "error", err)
	}
	door := auth.New(a.ledger, a.clock, []keys.Pepper{a.pepper})
	for name, key := range saved {
		if _, err := door.Key(ctx, key.Reveal(), netip.Addr{}); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
