// Command chaos runs an installation of real processes on loopback, has people
// and agents of several tenants book in it without pause, breaks everything
// that can break by a schedule that its seed decides, and then counts: what was
// acknowledged and is not there, what is there twice, machines that nobody
// owns, the difference between the cloud's bill and the report of costs, GPUs in
// two hands, GPUs on whose node the next holder finds what the one before left, and jobs that did not
// end once, or ran again after they had succeeded.
//
// It fails when one of these is not zero. See bench/README.md.
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
	"github.com/forewarm/forewarm/test/chaos/site"
)

// options are the flags.
type options struct {
	minutes  float64
	seed     uint64
	programs site.Programs
	askRack  string
	dir      string
	servers  int
	workers  int
	tenants  int
	people   int
	holders  int
	jobs     int
	verbose  bool
	schedule bool
}

func parseFlags() (options, error) {
	var o options
	flag.Float64Var(&o.minutes, "minutes", 10, "how long faults are injected; some minutes of settling follow")
	flag.Uint64Var(&o.seed, "seed", 0, "decides faults and requests; 0: another one each time")
	flag.StringVar(&o.programs.Binary, "binary", "bin/forewarm-clouds", "the program, built with the kind aws")
	flag.StringVar(&o.programs.NodeBinary, "node-binary", "bin/forewarm-node-static", "the daemon of nodes")
	flag.StringVar(&o.dir, "dir", "",
		"an empty folder for data and logs; empty: a new one, which is removed when all is well")
	flag.IntVar(&o.servers, "servers", 4, "server processes")
	flag.IntVar(&o.workers, "workers", 2, "worker processes")
	flag.IntVar(&o.tenants, "tenants", 3, "organizations, each with an agent")
	flag.IntVar(&o.people, "people", 6, "people of each organization")
	flag.IntVar(&o.holders, "holders", 3, "people of each organization who run commands on nodes with daemons")
	flag.IntVar(&o.jobs, "jobs", 1, "people of each organization who submit jobs to nodes with daemons")
	flag.StringVar(&o.askRack, "ask-rack", "",
		"for the installation itself: be a script of the provisioner exec, and ask the rack at this address")
	flag.BoolVar(&o.verbose, "v", false, "print every fault, and not only into the file faults.log")
	flag.BoolVar(&o.schedule, "schedule", false, "print the schedule of the seed and do nothing")
	flag.Parse()
	if o.minutes < 0.25 || o.minutes > 24*60 || o.servers < 1 || o.workers < 1 || o.tenants < 2 || o.people < 1 ||
		o.holders < 1 || o.jobs < 1 {
		return o, errors.New("minutes must be between 0.25 and 1440, tenants at least 2, and the other numbers at least 1")
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000 //nolint:gosec // a time is not negative
	}
	return o, o.findPrograms()
}

// findPrograms makes their paths absolute: they are started from other folders.
func (o *options) findPrograms() (err error) {
	if o.programs.RackScript, err = os.Executable(); err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	for _, path := range []*string{&o.programs.Binary, &o.programs.NodeBinary} {
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("finding the programs: %w", err)
		}
		if _, err = os.Stat(*path); err != nil && !o.schedule && o.askRack == "" {
			return fmt.Errorf("a program is missing: make chaos builds it: %w", err)
		}
	}
	return nil
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
	switch {
	case err != nil:
	case o.askRack != "":
		err = site.AskRack(context.Background(), o.askRack, os.Stdin, os.Stdout)
	default:
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
