// Command chaos runs an installation of real processes on loopback, has people
// and agents of several tenants book in it without pause, breaks everything
// that can break by a schedule that its seed decides, and then counts: what was
// acknowledged and is not there, what is there twice, machines that nobody
// owns, and the difference between the cloud's bill and the report of costs.
//
// It fails when one of the four is not zero. See bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/test/chaos/fault"
)

// options are the flags.
type options struct {
	minutes  float64
	seed     uint64
	binary   string
	dir      string
	servers  int
	workers  int
	tenants  int
	people   int
	verbose  bool
	schedule bool
}

func parseFlags() (options, error) {
	var o options
	flag.Float64Var(&o.minutes, "minutes", 10, "how long faults are injected; some minutes of settling follow")
	flag.Uint64Var(&o.seed, "seed", 0, "decides faults and requests; 0: another one each time")
	flag.StringVar(&o.binary, "binary", "bin/forewarm-clouds", "the program, built with the kind aws")
	flag.StringVar(&o.dir, "dir", "",
		"an empty folder for data and logs; empty: a new one, which is removed when all is well")
	flag.IntVar(&o.servers, "servers", 4, "server processes")
	flag.IntVar(&o.workers, "workers", 2, "worker processes")
	flag.IntVar(&o.tenants, "tenants", 3, "organizations, each with an agent")
	flag.IntVar(&o.people, "people", 6, "people of each organization")
	flag.BoolVar(&o.verbose, "v", false, "print every fault, and not only into the file faults.log")
	flag.BoolVar(&o.schedule, "schedule", false, "print the schedule of the seed and do nothing")
	flag.Parse()
	if o.minutes < 0.25 || o.minutes > 24*60 || o.servers < 1 || o.workers < 1 || o.tenants < 1 || o.people < 1 {
		return o, errors.New("minutes must be between 0.25 and 1440, and the numbers at least 1")
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000 //nolint:gosec // a time is not negative
	}
	var err error
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return o, fmt.Errorf("finding the program: %w", err)
	}
	if _, err = os.Stat(o.binary); err != nil && !o.schedule {
		return o, fmt.Errorf("the program is missing: make chaos builds it: %w", err)
	}
	return o, nil
}

func (o options) duration() time.Duration { return time.Duration(o.minutes * float64(time.Minute)) }

func main() {
	o, err := parseFlags()
	if err == nil && o.schedule {
		for _, p := range fault.Schedule(o.seed, o.duration()) {
			fmt.Printf("%8.1fs %s for %v\n", p.At.Seconds(), p.Kind, p.For.Round(time.Millisecond))
		}
		return
	}
	if err == nil {
		err = runInFolder(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// runInFolder makes a folder, and removes it again when there is nothing to look at.
func runInFolder(o options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	own := o.dir == ""
	if own {
		if o.dir, err = os.MkdirTemp("", "forewarm-chaos."); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
	} else if err := os.MkdirAll(o.dir, 0o755); err != nil { //nolint:gosec // PostgreSQL runs as another user
		return fmt.Errorf("making the folder: %w", err)
	}
	if err := os.Chmod(o.dir, 0o755); err != nil { //nolint:gosec // PostgreSQL runs as another user
		return fmt.Errorf("opening the folder to PostgreSQL: %w", err)
	}
	fmt.Printf("chaos: seed %d, %v of faults, %d servers, %d workers, data and logs in %s\n", o.seed, o.duration(),
		o.servers, o.workers, o.dir)
	err = playGame(ctx, o)
	if ctx.Err() != nil {
		err = errors.Join(errors.New("it was ended before its time; nothing was judged"), err)
	}
	if own && err == nil {
		return os.RemoveAll(o.dir)
	}
	return err
}
