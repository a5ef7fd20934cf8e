// Command claim measures how long it takes to claim a warm reservation over
// HTTP, compared with a bare transaction of two changed rows. See
// bench/README.md.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

// claims is how many reservations one run claims.
var claims = flag.Int("claims", 1000, "reservations to warm and claim in each run")

// unmeasured claims of each connection come first: they open connections and
// prepare statements.
const unmeasured = 20

func main() { rig.Main("1", runBenchmark) }

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) error {
	for _, n := range o.Connections {
		suffix := ""
		if n > 1 {
			suffix = fmt.Sprintf("_%d_connections", n)
		}
		series := map[string]rig.Series{}
		for i := range o.Count {
			profile := ""
			if i == o.Count-1 {
				profile = o.CPUProfile
			}
			claimed, bare, err := measureOnce(ctx, o, n, profile)
			if err != nil {
				return fmt.Errorf("run %d over %d connections: %w", i+1, n, err)
			}
			for name, v := range map[string]float64{
				"claim_p50": rig.Quantile(claimed, 0.5), "claim_p99": rig.Quantile(claimed, 0.99),
				"bare_p50": rig.Quantile(bare, 0.5), "bare_p99": rig.Quantile(bare, 0.99),
			} {
				series[name] = append(series[name], v)
			}
			fmt.Fprintf(out, "run %d, %d connections: %d claims counted\n", i+1, n, len(claimed))
		}
		for _, name := range []string{"claim_p50", "claim_p99", "bare_p50", "bare_p99"} {
			series[name].Print(out, name+suffix+"_ms", "ms")
		}
		series["claim_p50"].Over(series["bare_p50"]).Print(out, "claim_p50_of_bare"+suffix, "ratio")
		series["claim_p99"].Over(series["bare_p99"]).Print(out, "claim_p99_of_bare"+suffix, "ratio")
	}
	return nil
}

// measureOnce warms a new installation and claims all of it.
func measureOnce(ctx context.Context, o rig.Options, n int, profile string) (claimed, bare []time.Duration, err error) {
	i, err := rig.Install(ctx, o.Postgres, time.Second)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, i.Drop(ctx)) }()
	ready, err := i.Warm(ctx, max(*claims, n*(unmeasured+1)))
	if err != nil {
		return nil, nil, err
	}
	p, err := rig.Start(ctx, rig.Ours, i, profile)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(p.Stop(), err) }()
	parts := make([]part, n)
	var wait sync.WaitGroup
	for k := range parts {
		wait.Go(func() { parts[k].err = parts[k].measureClaims(ctx, i, p, ready[k*len(ready)/n:(k+1)*len(ready)/n]) })
	}
	wait.Wait()
	var acknowledged []string
	for _, part := range parts {
		claimed, bare = append(claimed, part.claimed...), append(bare, part.bare...)
		acknowledged, err = append(acknowledged, part.ids...), errors.Join(err, part.err)
	}
	if err == nil {
		err = errors.Join(i.Verify(ctx, acknowledged, rig.AllocationRows),
			i.Verify(ctx, ready, "SELECT count(*) FROM reservations WHERE id = ANY($1) AND state = 'claimed'"))
	}
	return claimed, bare, err
}

// part is what one connection did.
type part struct {
	claimed, bare []time.Duration
	ids           []string
	err           error
}

// measureClaims takes turns: one claim, one bare transaction, so that whatever slows the
// machine slows both.
func (p *part) measureClaims(ctx context.Context, i *rig.Installation, server *rig.Process, ready []string) error {
	c := rig.NewConnection(server.URL, i.Key.Reveal())
	defer c.Close()
	yardstick, err := rig.NewBare(ctx, i.Database)
	if err != nil {
		return err
	}
	for k, id := range ready {
		a, err := c.Post(ctx, "/v1/reservations/"+id+"/claim", "application/json", []byte(`{"lease_seconds":3600}`),
			http.StatusCreated)
		if err != nil {
			return errors.Join(err, yardstick.Close(ctx))
		}
		if !bytes.Contains(a.Body, []byte(`"state":"active"`)) {
			return errors.Join(fmt.Errorf("%s was not warm: %.300s", id, a.Body), yardstick.Close(ctx))
		}
		allocation, err := rig.ID(a.Body)
		if err != nil {
			return errors.Join(err, yardstick.Close(ctx))
		}
		p.ids = append(p.ids, allocation)
		took, err := yardstick.Update(ctx)
		if err != nil {
			return errors.Join(err, yardstick.Close(ctx))
		}
		if k >= unmeasured {
			p.claimed, p.bare = append(p.claimed, a.Took), append(p.bare, took)
		}
	}
	slices.Sort(p.ids)
	return yardstick.Close(ctx)
}
