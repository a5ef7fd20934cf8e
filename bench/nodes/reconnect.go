package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/attach"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/work"
)

// reconnectWithin is when the daemons are given up.
const reconnectWithin = 2 * time.Minute

// measureReconnect kills the server under the streams of all daemons, starts another at its
// address, and measures how long it takes from the kill, and from when it serves again, until
// each daemon is attached.
func measureReconnect(ctx context.Context, out io.Writer, i *rig.Installation, p **rig.Process,
	all []*daemon) (err error) {
	dir, err := os.MkdirTemp("", "forewarm-nodes")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	holds, err := hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	a, err := attachAll(ctx, (*p).URL, holds, all)
	defer a.stop()
	if err != nil {
		return err
	}
	if err := a.await(ctx, len(all)); err != nil {
		return err
	}
	killed := time.Now()
	if err := errors.Join((*p).Signal(syscall.SIGKILL), (*p).End(syscall.SIGKILL)); err != nil {
		return err
	}
	next, err := rig.StartAt(ctx, rig.Ours, i, "", strings.TrimPrefix((*p).URL, "http://"))
	if err != nil {
		return err
	}
	*p = next
	served := time.Now()
	if err := a.await(ctx, 2*len(all)); err != nil {
		return err
	}
	rig.Series{time.Since(killed).Seconds()}.Print(out, "reconnect_all_s", "s")
	rig.Series{time.Since(served).Seconds()}.Print(out, "reconnect_all_after_start_s", "s")
	return nil
}

// attached are the streams of daemons.
type attached struct {
	slog.Handler
	count atomic.Int64 // how often a daemon has attached
	end   context.CancelFunc
	group sync.WaitGroup
}

// attachAll keeps a stream for each daemon, each on a connection of its own.
func attachAll(ctx context.Context, url string, holds *hold.Keeper, all []*daemon) (*attached, error) {
	a := &attached{Handler: slog.DiscardHandler}
	ctx, a.end = context.WithCancel(ctx)
	for n, d := range all {
		one, err := attach.New(attach.Config{URL: url, Version: "bench", BootID: "bench", Epoch: 1,
			Key: func() obs.Secret { return d.key }, HTTP: &http.Client{Transport: attach.NewTransport()}, Holds: holds,
			Runner: work.Default, Hurry: func() {}, Log: slog.New(a),
			Random: rand.New(rand.NewPCG(uint64(n), 1))}) //nolint:gosec // jitter needs no secrecy
		if err != nil {
			return a, err
		}
		a.group.Go(func() { one.Run(ctx) })
	}
	return a, nil
}

// Enabled implements slog.Handler.
func (a *attached) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler: a daemon says that it is attached.
func (a *attached) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "attached") {
		a.count.Add(1)
	}
	return nil
}

// await waits until daemons have attached so many times in all.
func (a *attached) await(ctx context.Context, times int) error {
	for from := time.Now(); a.count.Load() < int64(times); {
		if time.Since(from) > reconnectWithin {
			return fmt.Errorf("only %d of %d attachments came", a.count.Load(), times)
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (a *attached) stop() {
	a.end()
	a.group.Wait()
}
