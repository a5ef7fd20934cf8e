package ledger

import "context"

// nestedStore is a store for verbs that work in a transaction that is open.
type nestedStore struct {
	Store
	tx Tx
}

// InTx runs fn as a part of the open transaction.
func (s *nestedStore) InTx(ctx context.Context, fn func(tx Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.tx.Nested(fn)
}

// Read runs fn on what the open transaction sees, its own changes included.
func (s *nestedStore) Read(ctx context.Context, fn func(r Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn(s.tx)
}
