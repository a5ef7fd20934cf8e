// Command batch measures how many reservations a second are durable when they
// come thousands in a request. See bench/README.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

// form is how the batches are written.
var form = flag.String("format", "json", "form of a batch: json (an array) or ndjson")

func main() { rig.Main("1,2,4", runBenchmark) }

// sizes of a batch, with the names of their figures.
var sizes = []struct {
	items  int
	figure string
}{{10_000, "batch"}, {1_000, "batch_1000"}}

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) error {
	for _, size := range sizes {
		best, name := rig.Series{}, size.figure+"_per_s"
		for _, n := range o.Connections {
			var s rig.Series
			for i := range o.Count {
				profile := ""
				if i == o.Count-1 {
					profile = o.CPUProfile
				}
				perSecond, err := measureOnce(ctx, out, o, n, size.items, profile)
				if err != nil {
					return fmt.Errorf("batches of %d over %d connections, run %d: %w", size.items, n, i+1, err)
				}
				s = append(s, perSecond)
			}
			s.Print(out, fmt.Sprintf("%s_%d_connections_per_s", size.figure, n), "1/s")
			if len(best) == 0 || s.Median() > best.Median() {
				best = s
			}
		}
		best.Print(out, name, "1/s")
	}
	return nil
}

// measureOnce measures on a database of its own, so that no run books into what another
// has left.
func measureOnce(ctx context.Context, out io.Writer, o rig.Options, n, items int,
	profile string) (perSecond float64, err error) {
	i, err := rig.Install(ctx, o.Postgres, 5*time.Minute)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, i.Drop(ctx)) }()
	p, err := rig.Start(ctx, rig.Ours, i, profile)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(p.Stop(), err) }()
	batches, contentType, err := encodeBatches(items, *form)
	if err != nil {
		return 0, err
	}
	r, err := rig.Loop(ctx, o, n, rig.Fleet{Servers: []*rig.Process{p}}, i.Key.Reveal(), http.StatusOK,
		func(connection, n int) (string, string, []byte) {
			return "/v1/reservations/batch", contentType, batches[(connection+n)%len(batches)]
		})
	if err != nil {
		return 0, err
	}
	var acknowledged []string
	for _, a := range r.All() {
		ids, err := acceptedIDs(a.Body, items)
		if err != nil {
			return 0, err
		}
		acknowledged = append(acknowledged, ids...)
	}
	if err := i.Verify(ctx, acknowledged, rig.ReservationRows, rig.ReservationEvents); err != nil {
		return 0, err
	}
	perSecond = r.PerSecond() * float64(items)
	fmt.Fprintf(out,
		"batches of %5d, %d connections: %6.0f/s  p50 %.0f ms  p99 %.0f ms  %d rows and events counted  (%s)\n", items,
		n, perSecond,
		rig.Quantile(r.Latencies(), 0.5), rig.Quantile(r.Latencies(), 0.99), len(acknowledged), r.CPUShare)
	return perSecond, nil
}

// encodeBatches makes a few different batches.
func encodeBatches(items int, form string) (batches [][]byte, contentType string, err error) {
	bookings := rig.Bookings(rig.PoolName, time.Now())
	batch := make([][]byte, items)
	for b := range 8 {
		for i := range batch {
			batch[i] = bookings[(b*91+i)%len(bookings)]
		}
		switch form {
		case "json":
			batches = append(batches, fmt.Appendf(nil, "[%s]", bytes.Join(batch, []byte(","))))
			contentType = "application/json"
		case "ndjson":
			batches = append(batches, append(bytes.Join(batch, []byte("\n")), '\n'))
			contentType = "application/x-ndjson"
		default:
			return nil, "", fmt.Errorf("-format: %q is neither json nor ndjson", form)
		}
	}
	return batches, contentType, nil
}

// acceptedIDs returns the ids of a batch, all of which must have been booked.
func acceptedIDs(body []byte, items int) ([]string, error) {
	var answer struct {
		Items []struct {
			Index  int    `json:"index"`
			Status int    `json:"status"`
			ID     string `json:"id"`
			Code   string `json:"code"`
		} `json:"items"`
		Accepted int `json:"accepted"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer to a batch: %w", err)
	}
	if answer.Accepted != items || len(answer.Items) != items {
		return nil, fmt.Errorf("of %d items %d were accepted and %d answered", items, answer.Accepted,
			len(answer.Items))
	}
	ids := make([]string, items)
	for i, item := range answer.Items {
		if item.Index != i || item.Status != http.StatusCreated || item.ID == "" {
			return nil, fmt.Errorf("item %d was answered with index %d, status %d %s", i, item.Index, item.Status,
				item.Code)
		}
		ids[i] = item.ID
	}
	return ids, nil
}
