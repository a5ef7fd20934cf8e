package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/forewarm/forewarm/contract"
)

// VerifyJournal compares the next part of the journal with its seals: those after
// a seal (LastSeal of the page before; empty: from the first). An anchor is a seal
// that was kept elsewhere and must still be in the chain; empty: none. Only for
// operators.
func (c *Client) VerifyJournal(ctx context.Context, after, anchor string) (contract.AuditPage, error) {
	query := url.Values{}
	if after != "" {
		query.Set("after", after)
	}
	if anchor != "" {
		query.Set("anchor", anchor)
	}
	return callFor[contract.AuditPage](ctx, c,
		call{method: http.MethodGet, path: []string{"audit", "verify"}, query: query})
}
