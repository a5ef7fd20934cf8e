package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Stream is an event stream that a client follows on a connection of its own.
type Stream struct {
	Body      io.ReadCloser
	transport *http.Transport
	cancel    context.CancelFunc
	closed    atomic.Bool
}

// OpenStream begins to follow.
func OpenStream(ctx context.Context, url, key string) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{cancel: cancel, transport: &http.Transport{DisableCompression: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("making a request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := s.transport.RoundTrip(req) //nolint:bodyclose // Close closes it
	if err != nil {
		cancel()
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	s.Body = resp.Body
	if resp.StatusCode != http.StatusOK {
		s.Close()
		return nil, fmt.Errorf("a stream was answered with %s", resp.Status)
	}
	return s, nil
}

// Close ends the stream.
func (s *Stream) Close() {
	s.closed.Store(true)
	s.cancel()
	_ = s.Body.Close() // it was read as far as it is of use
	s.transport.CloseIdleConnections()
}

// Closed reports whether Close was called.
func (s *Stream) Closed() bool { return s.closed.Load() }

// NewestEvent returns the number and the subject of the newest event.
func (d *Database) NewestEvent(ctx context.Context) (seq int64, subject string, err error) {
	conn, err := pgx.Connect(ctx, d.URL)
	if err != nil {
		return 0, "", fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	err = conn.QueryRow(ctx, "SELECT seq, subject FROM events ORDER BY seq DESC LIMIT 1").Scan(&seq, &subject)
	return seq, subject, errors.Join(err, conn.Close(ctx))
}
