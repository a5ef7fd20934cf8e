package daemon

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/ringfile"
	"github.com/forewarm/forewarm/ledger"
)

// CycleRecords says where this process keeps what the scheduler decides, and on what.
type CycleRecords struct {
	Folder  string `yaml:"folder"`   // empty: nothing is kept
	KeepMiB int    `yaml:"keep_mib"` // at most, of compressed files; 0: 64
}

const (
	defaultKeepMiB = 64
	mostKeepMiB    = 1 << 20
	// mostUnwritten is how many records wait for a slow disk before more are lost.
	mostUnwritten = 64
	// tellLost is how often the log says at most that records are lost.
	tellLost = time.Minute
)

func (c Config) checkCycleRecords() error {
	r := c.CycleRecords
	switch {
	case r.KeepMiB < 0 || r.KeepMiB > mostKeepMiB:
		return c.valueError("cycle_records.keep_mib", fmt.Sprintf("must be between 1 and %d", mostKeepMiB), "write 64")
	case r.Folder != "" && !filepath.IsAbs(r.Folder):
		return c.valueError("cycle_records.folder", fmt.Sprintf("%q is no absolute path", r.Folder),
			"write /var/lib/forewarm/cycles")
	}
	return nil
}

// recordFor has the ledger hand over what the scheduler decides, if that is to be kept.
func (c *cycleRecorder) recordFor(settings *ledger.Config) {
	if c != nil {
		settings.Cycles = c
	}
}

// cycleRecorder writes what the scheduler decided to a ring of files. A disk that is slow, full or gone costs records,
// and never a decision.
type cycleRecorder struct {
	of     CycleRecords
	clock  clock.Clock
	log    *slog.Logger
	metric *obs.Metrics
	queue  chan []byte

	mu   sync.Mutex
	last map[string][]byte // outcomes of looks that started nobody, by pool
	told time.Time         // when the log said last that records are lost

	ring *ringfile.Ring // of the goroutine that writes; nil: it could not be opened yet
}

func newCycleRecorder(a *app) *cycleRecorder {
	of := a.cfg.CycleRecords
	if of.Folder == "" {
		return nil
	}
	if of.KeepMiB == 0 {
		of.KeepMiB = defaultKeepMiB
	}
	a.metrics.ShowCyclesFromStart()
	return &cycleRecorder{of: of, clock: a.clock, log: a.log, metric: a.metrics, last: map[string][]byte{},
		queue: make(chan []byte, mostUnwritten)}
}

// String says where records are kept.
func (c *cycleRecorder) String() string {
	if c == nil {
		return "no cycles"
	}
	return fmt.Sprintf("%d MiB of cycles in %s", c.of.KeepMiB, c.of.Folder)
}

// RecordCycles implements ledger.CycleRecorder. A look that started nobody, and after which everybody waits as after
// the one before, is not kept: pools are looked at whenever anything changes.
func (c *cycleRecorder) RecordCycles(ctx context.Context, r scheduler.Record) {
	if isRepeated(c, r) {
		return
	}
	text, err := r.Encode()
	if err != nil {
		c.lose(ctx, err)
		return
	}
	select {
	case c.queue <- text:
	default:
		c.mu.Lock()
		delete(c.last, r.Pool) // the next look may tell the same, and is the first to be kept that does
		c.mu.Unlock()
		c.lose(ctx, errDiskBehind)
	}
}

var errDiskBehind = fmt.Errorf("%d records wait for the disk", mostUnwritten)

// isRepeated reports whether a look tells the same as the last one of its pool, and remembers it.
func isRepeated(c *cycleRecorder, r scheduler.Record) bool {
	outcome, err := r.Outcome()
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	isSame := !r.Starts() && bytes.Equal(c.last[r.Pool], outcome)
	c.last[r.Pool] = outcome
	return isSame
}

// run writes until the context ends.
func (c *cycleRecorder) run(ctx context.Context) error {
	if c == nil {
		<-ctx.Done()
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case text := <-c.queue:
			c.write(ctx, text)
		}
	}
}

// finish writes what is left once nobody decides any more.
func (c *cycleRecorder) finish(ctx context.Context) error {
	if c == nil {
		return nil
	}
	for len(c.queue) > 0 {
		c.write(ctx, <-c.queue)
	}
	if c.ring == nil {
		return nil
	}
	return c.ring.Close()
}

func (c *cycleRecorder) write(ctx context.Context, text []byte) {
	var err error
	if c.ring == nil {
		c.ring, err = ringfile.Open(c.of.Folder, "cycles", int64(c.of.KeepMiB)<<20)
	}
	if err == nil {
		err = c.ring.Add(text, c.clock.Now())
	}
	if err != nil {
		c.lose(ctx, err)
		return
	}
	c.metric.CycleRecorded(obs.CycleKept)
}

// lose counts a record that could not be kept, and says so in the log, though not each time.
func (c *cycleRecorder) lose(ctx context.Context, err error) {
	c.metric.CycleRecorded(obs.CycleLost)
	c.mu.Lock()
	now := c.clock.Now()
	isQuiet := !c.told.IsZero() && now.Sub(c.told) < tellLost
	if !isQuiet {
		c.told = now
	}
	c.mu.Unlock()
	if !isQuiet {
		c.log.ErrorContext(ctx, "what the scheduler decided could not be recorded; scheduling goes on", "folder",
			c.of.Folder, "error", err)
	}
}
