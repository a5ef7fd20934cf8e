package client

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
)

// Prewarm says whether guesses are warmed.
func (c *Client) Prewarm(ctx context.Context) (contract.Prewarm, error) {
	return callFor[contract.Prewarm](ctx, c, call{method: http.MethodGet, path: []string{"prewarm"}})
}

// PausePrewarm stops pre-warming on guesses.
func (c *Client) PausePrewarm(ctx context.Context, in contract.PrewarmPauseCreate) (contract.Prewarm, error) {
	return callFor[contract.Prewarm](ctx, c,
		call{method: http.MethodPost, path: []string{"prewarm", "pause"}, body: in})
}

// ResumePrewarm lets guesses be warmed again.
func (c *Client) ResumePrewarm(ctx context.Context, in contract.PrewarmResume) (contract.Prewarm, error) {
	return callFor[contract.Prewarm](ctx, c,
		call{method: http.MethodPost, path: []string{"prewarm", "resume"}, body: in})
}
