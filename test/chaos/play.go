package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/forewarm/forewarm/test/chaos/fault"
	"github.com/forewarm/forewarm/test/chaos/load"
	"github.com/forewarm/forewarm/test/chaos/site"
)

const (
	opening  = 8 * time.Minute // to start everything, or to make it whole again
	settling = 6 * time.Minute // until nothing is booked and no machine stands
)

// game is one run.
type game struct {
	options
	begun   time.Time
	site    *site.Site
	load    *load.Load
	journal *load.Journal
	breaker *fault.Breaker

	mu      sync.Mutex // of what follows
	log     *os.File
	broken  map[string]bool // statements that did not hold at some moment
	samples int
}

// playGame starts everything, breaks it, makes it whole, and judges.
func playGame(ctx context.Context, o options) (err error) {
	g := &game{options: o, begun: time.Now(), broken: map[string]bool{}}
	files, err := g.openFiles()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files()) }()
	starting, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	if g.site, err = site.Open(starting, o.dir, o.programs, o.servers, o.workers); err != nil {
		return fmt.Errorf("starting everything: %w", err)
	}
	defer func() { err = errors.Join(err, g.site.Close()) }()
	if g.load, err = load.New(starting, g.loadConfig(), g.journal); err != nil {
		return err
	}
	defer g.load.Close()
	g.breaker = fault.New(g.site, g.noteFault)
	g.begun = time.Now()
	if err := g.injectFaults(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	jobsOver := g.awaitJobs(ctx)
	handedBack := errors.Join(jobsOver, g.visitLast(ctx))
	return g.judgeRun(ctx, errors.Join(handedBack, g.endEverything(ctx)))
}

// openFiles opens the journal and the log of faults.
func (g *game) openFiles() (done func() error, err error) {
	journal, err := os.Create(filepath.Join(g.dir, "journal.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("making the journal: %w", err)
	}
	if g.log, err = os.Create(filepath.Join(g.dir, "faults.log")); err != nil {
		return nil, errors.Join(fmt.Errorf("making the log of faults: %w", err), journal.Close())
	}
	if err := errors.Join(makeOpenFile(g.visitsPath()), makeOpenFile(g.runsPath())); err != nil {
		return nil, errors.Join(err, journal.Close(), g.log.Close())
	}
	g.journal = load.NewJournal(journal)
	return func() error { return errors.Join(g.journal.Err(), journal.Close(), g.log.Close()) }, nil
}

func (g *game) visitsPath() string { return filepath.Join(g.dir, "visits.log") }

// runsPath is the file in which jobs write down that they ran: nothing of it is the product's own word.
func (g *game) runsPath() string { return filepath.Join(g.dir, "runs.log") }

// makeOpenFile makes a file in which commands on nodes write down what they see, whoever they are there.
func makeOpenFile(path string) error {
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		err = os.Chmod(path, 0o666) //nolint:gosec // holders have users of their own
	}
	if err != nil {
		return fmt.Errorf("making a file for commands on nodes: %w", err)
	}
	return nil
}

func (g *game) loadConfig() load.Config {
	c := load.Config{
		Key: g.site.Key, Tenants: g.tenants, People: g.options.people, Pools: []string{site.Steady, site.Spot},
		MaxGPUs: 64, Seed: g.seed, Holders: g.holders, Jobs: g.jobs,
		Visits: load.Visits{Pool: site.Bare, Shared: site.Shared, Log: g.visitsPath(), Runs: g.runsPath(), Mark: site.Mark},
	}
	for _, s := range g.site.Servers {
		c.Servers = append(c.Servers, s.URL)
	}
	return c
}

// injectFaults has everybody book while faults strike, and makes all whole again.
func (g *game) injectFaults(ctx context.Context) error {
	stop := g.load.Drive(ctx)
	watching, calm := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { g.watchRun(watching) })
	err := g.breaker.Run(ctx, fault.Schedule(g.seed, g.duration()))
	if ctx.Err() == nil && err == nil {
		healing, cancel := context.WithTimeout(ctx, opening)
		defer cancel()
		err = g.site.Heal(healing)
		g.printProgress("everything is whole again")
	}
	stop() // who asks is answered first
	calm()
	watch.Wait()
	if err != nil {
		return fmt.Errorf("breaking and mending: %w", err)
	}
	return nil
}

// noteFault writes down a fault.
func (g *game) noteFault(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fmt.Fprintf(g.log, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), text)
	if g.verbose {
		fmt.Printf("%7.1fs  ! %s\n", time.Since(g.begun).Seconds(), text)
	}
}

// printProgress prints a line of progress.
func (g *game) printProgress(format string, args ...any) {
	fmt.Printf("%7.1fs  %s\n", time.Since(g.begun).Seconds(), fmt.Sprintf(format, args...))
}
