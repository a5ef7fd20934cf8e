package txn

import (
	"context"

	"github.com/forewarm/forewarm/ledger"
)

// NestedStore is a store for verbs that work in a transaction that is open.
type NestedStore struct {
	ledger.Store
	Tx ledger.Tx
}

// InTx runs fn as a part of the open transaction.
func (s *NestedStore) InTx(ctx context.Context, fn func(tx ledger.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Tx.Nested(fn)
}

// Read runs fn on what the open transaction sees, its own changes included.
func (s *NestedStore) Read(ctx context.Context, fn func(r ledger.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn(s.Tx)
}
