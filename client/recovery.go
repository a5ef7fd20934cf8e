package client

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
)

// Recovery says what only reconciles, and which machines no node stands for.
func (c *Client) Recovery(ctx context.Context) (contract.RecoveryState, error) {
	return callFor[contract.RecoveryState](ctx, c, call{method: http.MethodGet, path: []string{"recovery"}})
}

// BeginRecovery has every pool only reconcile until ConfirmRecovery: nothing is
// made, ended, promised or handed out.
func (c *Client) BeginRecovery(ctx context.Context, reason string) (contract.RecoveryState, error) {
	return callFor[contract.RecoveryState](ctx, c, call{method: http.MethodPost, path: []string{"recovery", "begin"},
		body: contract.RecoveryBegin{Reason: reason}})
}

// ConfirmRecovery has every pool work again on what the ledger knows now.
// Machines that no node stands for are then ended.
func (c *Client) ConfirmRecovery(ctx context.Context) (contract.RecoveryState, error) {
	return callFor[contract.RecoveryState](ctx, c, call{method: http.MethodPost, path: []string{"recovery", "confirm"}})
}

// AcceptJournal says that the journal is right although seals of it are missing,
// as after a restored backup. Sealing goes on from here.
func (c *Client) AcceptJournal(ctx context.Context) (contract.RecoveryState, error) {
	return callFor[contract.RecoveryState](ctx, c, call{method: http.MethodPost, path: []string{"recovery", "journal"}})
}
