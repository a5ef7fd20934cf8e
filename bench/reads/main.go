// Command reads measures how long reads take beside a year of ended bookings and many
// live ones. See bench/README.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

// What is in the database.
var (
	ended = flag.Int("ended", 1_000_000, "reservations that are over")
	live  = flag.Int("live", 10_000, "reservations that are not")
)

func main() { rig.Main("4", runBenchmark) }

// read is one thing that people and programs read.
type read struct {
	name, path string
	holds      string // in every answer, so that an empty one is not measured
}

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) (err error) {
	i, err := rig.Install(ctx, o.Postgres, 5*time.Minute)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Drop(ctx)) }()
	if err := i.AddHistory(ctx, rig.History{Bookings: *ended}); err != nil {
		return err
	}
	if err := i.Fill(ctx, *live, []string{rig.PoolName}); err != nil {
		return err
	}
	size, err := i.Size(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d ended and %d live reservations, and what belongs to them: %s\n", *ended, *live, size)
	p, err := rig.Start(ctx, rig.Ours, i, o.CPUProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(p.Stop(), err) }()
	reads, err := listReads(ctx, i, p)
	if err != nil {
		return err
	}
	for _, n := range o.Connections {
		if err := measureReads(ctx, out, o, i, p, n, reads); err != nil {
			return fmt.Errorf("%d connections: %w", n, err)
		}
	}
	return nil
}

// listReads names what is read. Cursors and ids come from the lists themselves.
func listReads(ctx context.Context, i *rig.Installation, p *rig.Process) ([]read, error) {
	c := rig.NewConnection(p.URL, i.Key.Reveal())
	defer c.Close()
	first := map[string]page{}
	for _, path := range []string{"/v1/reservations", "/v1/reservations?all=true", "/v1/allocations?all=true"} {
		a, err := c.Get(ctx, path)
		if err != nil {
			return nil, err
		}
		var list page
		if err := json.Unmarshal(a.Body, &list); err != nil || len(list.Items) == 0 {
			return nil, errors.Join(fmt.Errorf("%s answered %.200s", path, a.Body), err)
		}
		first[path] = list
	}
	const day = 24 * time.Hour
	item := `"id":"`
	return []read{
		{"reservations", "/v1/reservations", item},
		{"reservations_tenant", "/v1/reservations?organization=bench", item},
		{"reservations_all", "/v1/reservations?all=true", item},
		{"reservations_tenant_all", "/v1/reservations?organization=bench&all=true", item},
		{"reservations_next", "/v1/reservations?all=true&cursor=" + first["/v1/reservations?all=true"].Next, item},
		{"reservations_expired", "/v1/reservations?state=expired", item},
		{"reservations_month_ago", "/v1/reservations?" + during(31*day, 30*day), item},
		{"allocations", "/v1/allocations", `"items":`}, // none is live
		{"allocations_all", "/v1/allocations?all=true", item},
		{"allocations_tenant_all", "/v1/allocations?organization=bench&all=true", item},
		{"allocations_next", "/v1/allocations?all=true&cursor=" + first["/v1/allocations?all=true"].Next, item},
		{"allocations_month_ago", "/v1/allocations?" + during(31*day, 30*day), item},
		{"reservation", "/v1/reservations/" + first["/v1/reservations"].Items[0].ID, item},
		{"allocation", "/v1/allocations/" + first["/v1/allocations?all=true"].Items[0].ID, item},
		{"nodes_all", "/v1/nodes?all=true", item},
		{"pools", "/v1/pools", item},
		{"summary", "/v1/reports/summary", `"starts":`},
		{"costs", "/v1/reports/costs", `"payer":"tenant"`},
		{"usage", "/v1/organizations/bench/usage", `"`},
		{"calendar", "/v1/pools/bench/calendar", `"free_gpus":`},
		{"calendar_month", "/v1/pools/bench/calendar?" + periodOf("from", "to", 0, -30*day), `"free_gpus":`},
		{"events", "/v1/events?limit=100", `"seq":`},
	}, nil
}

// page is the part of a list that is followed.
type page struct {
	Items []struct {
		ID string `json:"id"`
	} `json:"items"`
	Next string `json:"next_cursor"`
}

func during(from, to time.Duration) string { return periodOf("since", "until", from, to) }

// periodOf is a period as parameters, as long ago as is said.
func periodOf(first, last string, from, to time.Duration) string {
	now := time.Now().UTC().Truncate(time.Hour)
	return url.Values{first: {now.Add(-from).Format(time.RFC3339)}, last: {now.Add(-to).Format(time.RFC3339)}}.Encode()
}

// measureReads has n clients read one thing after the other, in rounds, so that what
// happens to the machine happens to all. The first round is not counted.
func measureReads(ctx context.Context, out io.Writer, o rig.Options, i *rig.Installation, p *rig.Process, n int,
	reads []read) error {
	series := map[string]rig.Series{}
	for range o.Count {
		took := make([]map[string][]time.Duration, n)
		errs := make([]error, n)
		var wait sync.WaitGroup
		for k := range n {
			wait.Go(func() {
				took[k], errs[k] = readInRounds(ctx, rig.NewConnection(p.URL, i.Key.Reveal()), o.WarmUp+o.Duration, k, reads)
			})
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for _, r := range reads {
			var all []time.Duration
			for k := range n {
				all = append(all, took[k][r.name]...)
			}
			p50, p99 := rig.Quantile(all, 0.5), rig.Quantile(all, 0.99)
			series[r.name+"_p50"] = append(series[r.name+"_p50"], p50)
			series[r.name+"_p99"] = append(series[r.name+"_p99"], p99)
			fmt.Fprintf(out, "%-24s %5d reads  p50 %8.2f ms  p99 %8.2f ms\n", r.name, len(all), p50, p99)
		}
	}
	for _, r := range reads {
		series[r.name+"_p50"].Print(out, fmt.Sprintf("read_%s_p50_ms", r.name), "ms")
		series[r.name+"_p99"].Print(out, fmt.Sprintf("read_%s_p99_ms", r.name), "ms")
	}
	return nil
}

// leastRounds is how often each thing is read, however long it takes.
const leastRounds = 3

func readInRounds(ctx context.Context, c *rig.Connection, length time.Duration, k int, reads []read) (
	map[string][]time.Duration, error) {
	defer c.Close()
	took := map[string][]time.Duration{}
	begin := time.Now()
	for round := 0; round <= leastRounds || time.Since(begin) < length; round++ {
		for at := range reads {
			r := reads[(at+k*len(reads)/4)%len(reads)] // the clients are not all at the same
			a, err := c.Get(ctx, r.path)
			if err != nil {
				return nil, err
			}
			if !bytes.Contains(a.Body, []byte(r.holds)) {
				return nil, fmt.Errorf("%s answered %.300s", r.path, a.Body)
			}
			if round > 0 {
				took[r.name] = append(took[r.name], a.Took)
			}
		}
	}
	return took, nil
}
