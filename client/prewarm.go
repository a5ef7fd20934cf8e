package client

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
)

// Prewarm says whether speculative reservations are warmed.
func (c *Client) Prewarm(ctx context.Context) (contract.Prewarm, error) {
	return callFor[contract.Prewarm](ctx, c, call{method: http.MethodGet, path: []string{"prewarm"}})
}

// PausePrewarm stops warming for speculative reservations.
func (c *Client) PausePrewarm(ctx context.Context, in contract.PrewarmPauseCreate) (contract.Prewarm, error) {
	return callFor[contract.Prewarm](ctx, c,
		call{method: http.MethodPost, path: []string{"prewarm", "pause"}, body: in})
}

// ResumePrewarm has speculative reservations warmed again.
func (c *Client) ResumePrewarm(ctx context.Context, in contract.PrewarmResume) (contract.Prewarm, error) {
	return callFor[contract.Prewarm](ctx, c,
		call{method: http.MethodPost, path: []string{"prewarm", "resume"}, body: in})
}
