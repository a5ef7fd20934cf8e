package sqlledger

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

var _ ledger.Peers = (*Store)(nil)

// peerRow is a row of the table peers.
type peerRow struct {
	ID      string
	Address string
	Since   int64
}

// Attend removes who is gone before it notes who is there, so that a server that
// was gone begins anew.
func (s *Store) Attend(ctx context.Context, p ledger.Peer, life time.Duration) (all []ledger.Peer, err error) {
	err = s.inDirectTx(ctx, func(t *tx) error {
		now := t.Now()
		if _, err := t.execStatement("removing servers that are gone", "DELETE FROM peers WHERE until < ?",
			toMicros(now)); err != nil {
			return err
		}
		if _, err := t.execStatement("noting a server", `INSERT INTO peers (id, address, since, until)
			VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET address = excluded.address, until = excluded.until`,
			p.ID, p.Address, toMicros(now), toMicros(now.Add(life))); err != nil {
			return err
		}
		all, err = t.readPeers()
		return err
	})
	return all, err
}

func (r taskReader) Servers() (all []ledger.Peer, err error) {
	var rows []peerRow
	err = r.newQuery().Table("peers").Where("until >= ?", toMicros(r.Now())).Order("since, id").Limit(maxPeers).
		Find(&rows).Error
	for _, row := range rows {
		all = append(all, ledger.Peer{ID: row.ID, Address: row.Address, Since: toTime(row.Since)})
	}
	return all, wrapError("listing servers", err)
}

// maxPeers bounds what is read of a table that somebody has filled.
const maxPeers = 64

// readPeers lists who is there.
func (t *tx) readPeers() ([]ledger.Peer, error) {
	var rows []peerRow
	if err := t.newQuery().Table("peers").Order("since, id").Limit(maxPeers).Find(&rows).Error; err != nil {
		return nil, wrapError("listing servers", err)
	}
	all := make([]ledger.Peer, len(rows))
	for i, row := range rows {
		all[i] = ledger.Peer{ID: row.ID, Address: row.Address, Since: toTime(row.Since)}
	}
	return all, nil
}

// Leave removes a server.
func (s *Store) Leave(ctx context.Context, id string) error {
	return s.inDirectTx(ctx, func(t *tx) error {
		_, err := t.execStatement("removing a server", "DELETE FROM peers WHERE id = ?", id)
		return err
	})
}

// inDirectTx runs statements that are no verb's in a transaction, and waits for no
// lock for long.
func (s *Store) inDirectTx(ctx context.Context, fn func(t *tx) error) error {
	return s.InTx(ledger.Hurried(ctx), func(port ledger.Tx) error {
		t, ok := port.(*tx)
		if !ok {
			return fmt.Errorf("the transaction is a %T", port)
		}
		return fn(t)
	})
}
