// Package report has the reads that explain: why a booking waits, what happens
// next, how much everybody has.
package report

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/outlook"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Reporting is the verbs of what is read and explained.
type Reporting struct{ *txn.Engine }

// Shares reads the fair shares of a pool, by id or name, that the actor may see:
// an organization its own, an operator all. The largest comes first.
func (l Reporting) Shares(ctx context.Context, actor ledger.Actor, idOrName string) (
	ledger.Pool, []ledger.Share, error) {
	var pool ledger.Pool
	var out []ledger.Share
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		found, err := ledger.LivePool(r, idOrName)
		if err != nil {
			return err
		}
		state, err := r.LiveState(found.ID)
		if err != nil {
			return fmt.Errorf("reading pool: %w", err)
		}
		pool = state.Pool
		out, err = booking.SharesOf(l.Engine, r, actor, state)
		return err
	})
	return pool, out, err
}

// Sight returns what a scope sees of nodes.
func (l Reporting) Sight(s ledger.Scope) ledger.Sight {
	return ledger.Sight{Scope: s, Open: s.All || l.Config.TenantsSeeNodes && s.OrganizationID != ""}
}

// Troubles reads what fails again and again.
func (l Reporting) Troubles(r ledger.Reader) (ledger.Troubles, error) { return fleet.ReadTroubles(r) }

// Waits returns estimates on what r reads.
func (l Reporting) Waits(r ledger.Reader) *outlook.Waits { return outlook.NewWaits(l.Config, r) }
