package clienttest

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/attach"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
	"github.com/forewarm/forewarm/node/supervise"
	"github.com/forewarm/forewarm/node/supervise/supervisetest"
	"github.com/forewarm/forewarm/node/work"
)

// StartDaemons runs a node daemon for each node that boots from now on, so that commands can be
// run there: in truth all of them run on this machine.
func (i *Installation) StartDaemons() {
	dir := must(os.MkdirTemp("/var/tmp", "forewarm-client-test-"))
	check(os.Chmod(dir, 0o711)) //nolint:gosec // users of holds pass through it
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for begun := map[string]bool{}; ctx.Err() == nil; {
			for n, err := range i.Client().Nodes(ctx, client.Filter{State: []string{"ready"}}) {
				if err == nil && !begun[n.ID] {
					begun[n.ID] = true
					running.Go(func() { i.runDaemon(ctx, n.ID, filepath.Join(dir, n.ID)) })
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	i.stop = append(i.stop, func() {
		cancel()
		running.Wait()
		check(os.RemoveAll(dir))
	})
}

// runDaemon is the daemon of a node: it joins, and runs what holders send until the context ends.
func (i *Installation) runDaemon(ctx context.Context, nodeID, dir string) {
	token, err := i.Client().IssueJoinToken(ctx, nodeID, 0)
	if ctx.Err() != nil {
		return
	}
	check(err)
	api := must(client.New(i.URL, token.Token, http.DefaultClient))
	joined, err := api.JoinNode(ctx, nodeID, contract.NodeJoin{BootID: nodeID})
	if ctx.Err() != nil {
		return
	}
	check(err)
	quiet := slog.New(slog.DiscardHandler)
	check(os.Mkdir(dir, 0o711)) //nolint:gosec // as above
	holds := must(hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: clock.System{}, Log: quiet, Grace: 100 * time.Millisecond,
		Launcher: launchtest.Launcher()}))
	defer holds.EndAll()
	supervisors := must(supervise.Open(filepath.Join(dir, "sessions"), supervisetest.Command()))
	defer supervisors.Close()
	transport := attach.NewTransport()
	defer transport.CloseIdleConnections()
	must(attach.New(attach.Config{URL: i.URL, BootID: nodeID, Holds: holds, Supervisors: supervisors,
		Patience: time.Second, // after the end of the test nobody comes back
		Hurry:    func() {}, Log: quiet, Key: func() obs.Secret { return obs.NewSecret(joined.Key) },
		HTTP: &http.Client{Transport: transport}, Random: rand.New(rand.NewPCG(1, 2)), //nolint:gosec // repeatable
		Runner: work.Runner{HangUp: time.Minute, Terminate: time.Minute, Kill: time.Minute, Drain: time.Minute}})).Run(ctx)
}
