package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// Calendar reads when a pool, by id or name, has room, in steps; a step of 0 is
// one at each change. Zero times are the server's defaults.
func (c *Client) Calendar(ctx context.Context, idOrName string, from, to time.Time,
	step time.Duration) (contract.Calendar, error) {
	q := url.Values{"step_seconds": {strconv.FormatInt(int64(step/time.Second), 10)}}
	for name, t := range map[string]time.Time{"from": from, "to": to} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	return callFor[contract.Calendar](ctx, c,
		call{method: http.MethodGet, path: []string{"pools", idOrName, "calendar"},
			query: q})
}

// CalendarAdvice asks in which windows a request has a place.
func (c *Client) CalendarAdvice(ctx context.Context,
	in contract.CalendarAdviceRequest) (contract.CalendarAdvice, error) {
	return callFor[contract.CalendarAdvice](ctx, c, call{method: http.MethodPost, path: []string{"advice", "calendar"},
		body: in})
}
