// Package rig is what the benchmarks of the running program share: a scratch
// database that is known to be durable, the server in a process of its own,
// baselines that are built the same way, a closed loop of clients, and the
// count afterwards of what was acknowledged.
//
// Server and client are two processes on one machine, as is the database, so a
// figure is for all of them together.
package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Options are the flags that every benchmark has.
type Options struct {
	Postgres    string        // URL of a server on which databases may be made
	Duration    time.Duration // of one measurement
	WarmUp      time.Duration // before each measurement, not counted
	Count       int           // runs; the figure is their median
	Connections []int         // to be measured, one after the other
	CPUProfile  string        // file for the server's CPU profile; empty: none
}

// Parse reads the flags. connections is the default of -connections.
func Parse(connections string) (Options, error) {
	o := Options{}
	flag.StringVar(&o.Postgres, "postgres", os.Getenv("FOREWARM_TEST_POSTGRES"),
		"URL of a PostgreSQL server on which databases may be made")
	flag.DurationVar(&o.Duration, "duration", 5*time.Second, "length of one measurement")
	flag.DurationVar(&o.WarmUp, "warmup", time.Second, "time before each measurement that is not counted")
	flag.IntVar(&o.Count, "count", 5, "number of runs; the figure is their median")
	flag.StringVar(&o.CPUProfile, "cpuprofile", "", "file for a CPU profile of the server, in the last run")
	list := flag.String("connections", connections, "numbers of connections, with commas")
	flag.Parse()
	for field := range strings.SplitSeq(*list, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-connections: %q is not a number of connections", field)
		}
		o.Connections = append(o.Connections, n)
	}
	switch {
	case o.Postgres == "":
		return o, errors.New("-postgres: is empty: name a PostgreSQL server, or set FOREWARM_TEST_POSTGRES")
	case o.Count < 1 || o.Duration <= 0 || o.WarmUp < 0:
		return o, errors.New("-count and -duration must be positive")
	}
	return o, nil
}

// Main runs a benchmark, or the server that one has started, and ends the
// process: with 1 and the reason when something was not as it must be.
func Main(connections string, run func(context.Context, io.Writer, Options) error) {
	ctx := context.Background()
	var err error
	if kind := os.Getenv(kindVariable); kind != "" {
		err = serveKind(ctx, Kind(kind))
	} else {
		var o Options
		if o, err = Parse(connections); err == nil {
			if err = requireDurable(ctx, os.Stdout, o.Postgres); err == nil {
				err = run(ctx, os.Stdout, o)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}
