package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// EventFilter narrows events. Zero fields do not narrow.
type EventFilter struct {
	After   int64  // only those with a larger sequence number
	Subject string // only those about what has this id
}

func (f EventFilter) query() url.Values {
	q := url.Values{}
	if f.Subject != "" {
		q.Set("subject", f.Subject)
	}
	return q
}

// ListEvents returns up to limit events after a sequence number, oldest first,
// and where to go on. A limit of zero leaves the server's default.
func (c *Client) ListEvents(ctx context.Context, after int64, limit int) (contract.EventList, error) {
	return c.FindEvents(ctx, EventFilter{After: after}, limit)
}

// FindEvents is ListEvents of those that match a filter.
func (c *Client) FindEvents(ctx context.Context, f EventFilter, limit int) (contract.EventList, error) {
	q := f.query()
	q.Set("after", strconv.FormatInt(f.After, 10))
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return callFor[contract.EventList](ctx, c, call{method: http.MethodGet, path: []string{"events"}, query: q})
}

// Events streams the events after a sequence number as they happen, until the
// context ends or the caller stops. A stream that breaks after it has brought
// something is taken up where it was left; one that brings nothing ends the
// sequence with its error, and the caller decides when to try again.
func (c *Client) Events(ctx context.Context, after int64) iter.Seq2[contract.Event, error] {
	return c.FollowEvents(ctx, EventFilter{After: after})
}

// FollowEvents is Events of those that match a filter.
func (c *Client) FollowEvents(ctx context.Context, f EventFilter) iter.Seq2[contract.Event, error] {
	return func(yield func(contract.Event, error) bool) {
		for {
			before, stopped := f.After, false
			err := c.readStream(ctx, f, func(e contract.Event) bool {
				f.After = e.Seq
				stopped = !yield(e, nil)
				return !stopped
			})
			if stopped || ctx.Err() != nil {
				return
			}
			if f.After == before {
				yield(contract.Event{}, err)
				return
			}
		}
	}
}

// readStream reads one connection until it ends, which is always an error, or see
// returns false.
func (c *Client) readStream(ctx context.Context, f EventFilter, see func(contract.Event) bool) error {
	resp, err := c.sendCall(ctx, call{method: http.MethodGet, path: []string{"events", "stream"}, query: f.query(),
		header: http.Header{"Accept": {"text/event-stream"}, "Last-Event-Id": {strconv.FormatInt(f.After, 10)}}})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data:")
		if !found {
			continue // ids, names, comments and blank lines: data has all of it
		}
		var e contract.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("decoding an event: %w", err)
		}
		if e.Type == contract.EventStreamEnded {
			return fmt.Errorf("%w: %s", errStreamEnded, e.Message)
		}
		if !see(e) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading events: %w", err)
	}
	return errors.Join(errStreamEnded, io.ErrUnexpectedEOF)
}

var errStreamEnded = errors.New("the server ended the event stream")
