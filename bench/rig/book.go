package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Hours is over how many different hours the bookings are spread: 30 days.
const Hours = 30 * 24

// firstHour is the first of them.
func firstHour(now time.Time) time.Time { return now.UTC().Truncate(time.Hour).Add(24 * time.Hour) }

// Bookings are bodies that each ask for one GPU of the pool over another hour, from
// tomorrow on.
func Bookings(pool string, now time.Time) [][]byte {
	first := firstHour(now)
	bodies := make([][]byte, Hours)
	for i := range bodies {
		start := first.Add(time.Duration(i) * time.Hour)
		bodies[i] = fmt.Appendf(nil, `{"pool":%q,"gpus":1,"start":%q,"end":%q}`, pool, start.Format(time.RFC3339),
			start.Add(time.Hour).Format(time.RFC3339))
	}
	return bodies
}

// BookInTurn runs the loop with single reservations, in one pool after the other, and
// returns the ids that were acknowledged.
func BookInTurn(ctx context.Context, o Options, n int, f Fleet, key string, pools ...string) (Result, []string, error) {
	var bodies [][][]byte
	for _, pool := range pools {
		bodies = append(bodies, Bookings(pool, time.Now()))
	}
	r, err := Loop(ctx, o, n, f, key, http.StatusCreated, func(connection, n int) (string, string, []byte) {
		of := bodies[(connection+n)%len(bodies)]
		return "/v1/reservations", "application/json", of[(connection*97+n)%len(of)]
	})
	if err != nil {
		return r, nil, err
	}
	ids, err := IDs(r.All())
	return r, ids, err
}

// ID finds the id in the body of an answer. It is the first member that is so
// called.
func ID(body []byte) (string, error) {
	_, rest, found := bytes.Cut(body, []byte(`"id":"`))
	id, _, ended := bytes.Cut(rest, []byte(`"`))
	if !found || !ended {
		return "", errors.New("an answer carries no id")
	}
	return string(id), nil
}

// IDs finds the id in each of the answers.
func IDs(answers []Answer) ([]string, error) {
	out := make([]string, len(answers))
	for i, a := range answers {
		var err error
		if out[i], err = ID(a.Body); err != nil {
			return nil, err
		}
	}
	return out, nil
}
