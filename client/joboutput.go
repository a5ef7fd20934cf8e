package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// OutputQuery says what of a job's output is read.
type OutputQuery struct {
	Attempt int       // counted from 1; zero: the last one
	Rank    int       // of the node on which it was written
	Offset  int64     // how many bytes are left out, from the beginning
	Tail    int64     // only so many bytes before the end; zero: all
	Since   time.Time // only from what was written then, by the node's clock; zero: from the beginning; not beside Tail
	Follow  bool      // go on until the attempt is over
}

func (q OutputQuery) query() url.Values {
	out := url.Values{}
	for name, n := range map[string]int64{"attempt": int64(q.Attempt), "rank": int64(q.Rank), "offset": q.Offset,
		"tail": q.Tail} {
		if n != 0 {
			out.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if !q.Since.IsZero() {
		out.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.Follow {
		out.Set("follow", "true")
	}
	return out
}

// JobOutput goes through what an attempt of a job wrote on one node, in the order in which it was
// written. Each byte comes once: a connection that is cut after it has brought something is taken
// up where it was left. One that brings nothing ends the sequence with its error; the caller may
// come back with the Attempt of the last piece and the Offset behind it. A piece with LeftOut follows
// so many bytes that were not kept.
func (c *Client) JobOutput(ctx context.Context, id string, q OutputQuery) iter.Seq2[contract.JobOutput, error] {
	return func(yield func(contract.JobOutput, error) bool) {
		for {
			brought, stopped := false, false
			err := c.readOutput(ctx, id, q, func(piece contract.JobOutput) bool {
				if piece = q.goPast(piece); len(piece.Data) > 0 {
					brought, stopped = true, !yield(piece, nil)
				}
				return !stopped
			})
			switch {
			case err == nil || stopped:
				return
			case !brought || ctx.Err() != nil:
				yield(contract.JobOutput{}, err)
				return
			}
		}
	}
}

// goPast leaves out of a piece what came before, and has the next question begin behind it.
func (q *OutputQuery) goPast(piece contract.JobOutput) contract.JobOutput {
	begun := q.Tail == 0 && q.Since.IsZero() // then it is known where the piece begins, unless something is not kept
	if again := q.Offset - piece.Offset; begun && again > 0 {
		again = min(again, int64(len(piece.Data)))
		piece.Offset, piece.Data = piece.Offset+again, piece.Data[again:]
	}
	if begun { // also where the server is one that does not say what is not kept
		piece.LeftOut = max(0, piece.Offset-q.Offset)
	}
	q.Attempt, q.Offset = piece.Attempt, max(q.Offset, piece.Offset+int64(len(piece.Data)))
	q.Tail, q.Since = 0, time.Time{}
	return piece
}

// readOutput reads one connection until it ends, or see returns false.
func (c *Client) readOutput(ctx context.Context, id string, q OutputQuery, see func(contract.JobOutput) bool) error {
	resp, err := c.sendCall(ctx, call{method: http.MethodGet, path: []string{"jobs", id, "output"}, query: q.query(),
		header: http.Header{"Accept": {"application/x-ndjson, " + contract.ProblemContentType}}})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	for pieces := json.NewDecoder(resp.Body); ; {
		var piece contract.JobOutput
		err := pieces.Decode(&piece)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the output of %s: %w", id, err)
		case !see(piece):
			return nil
		}
	}
}
