package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/llm/scripted"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

var monday = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// home is a customer's machine, with a history, a log and a model, and the
// control plane that its agent talks to.
type home struct {
	t      *testing.T
	dir    string
	clock  *clock.Manual
	model  *scripted.Server
	url    string // of the control plane
	llm    string // of the model
	client *client.Client
	key    string // of the agent
}

func newHome(t *testing.T) *home {
	t.Helper()
	w := &home{t: t, dir: t.TempDir(), clock: clock.NewManual(monday), model: &scripted.Server{}}
	w.startServer()
	llm := httptest.NewServer(w.model)
	t.Cleanup(llm.Close)
	w.llm = llm.URL + "/v1"
	w.writeHistory()
	require.NoError(t, os.WriteFile(w.pathOf("train.log"), nil, 0o600))
	return w
}

// startServer starts a real server over a real ledger, with a pool and an agent's key.
func (w *home) startServer() {
	w.t.Helper()
	ctx := w.t.Context()
	store, err := sqlledger.Open(ctx, sqlledger.Config{URL: "sqlite://:memory:", Clock: w.clock, Unsafe: true})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, store.Close()) })
	require.NoError(w.t, store.Migrate(ctx))
	l := verbs.New(store, &ids.Sequence{}, ledger.Config{})
	pepper, err := keys.ParsePepper("1:" + strings.Repeat("5a", 32))
	require.NoError(w.t, err)
	s, err := server.New(server.Config{Ledger: l, Clock: w.clock, Logger: slog.New(slog.DiscardHandler),
		Peppers: []keys.Pepper{pepper}, Environment: "test"})
	require.NoError(w.t, err)
	root, secret, err := auth.Minter{Environment: "test", Pepper: pepper,
		Random: rand.NewChaCha8([32]byte{2})}.Mint(ledger.Key{Name: "root"})
	require.NoError(w.t, err)
	_, err = l.Bootstrap(ctx, "acme", quota.Limits{GPUs: 16, SpeculationPerDay: 1000 * money.USD}, root)
	require.NoError(w.t, err)
	listening := httptest.NewServer(s)
	w.t.Cleanup(listening.Close)
	w.url = listening.URL
	w.client, err = client.New(w.url, secret.Reveal(), listening.Client())
	require.NoError(w.t, err)
	_, err = w.client.CreatePool(ctx, contract.PoolCreate{Name: "lab", Provisioner: "sim", Model: "a100",
		GPUsPerNode: 4, GPUMemoryMiB: 81920,
		PricePerNodeHour: contract.Money{Amount: "8.40", Currency: "USD"}, MaxNodes: 2, Simulated: true,
		BootP50Seconds: 300, BootP95Seconds: 300})
	require.NoError(w.t, err)
	made, err := w.client.CreateKey(ctx, contract.KeyCreate{Name: "agent", Kind: contract.KindAgent, Role: "member",
		Caps: &contract.Caps{
			MaxGPUs: 8, MaxPerDay: contract.Money{Amount: "500", Currency: "USD"}, MaxLeadSeconds: 86400,
			MaxWindowSeconds: 6 * 3600}})
	require.NoError(w.t, err)
	w.key = made.Secret
}

// writeHistory writes three weeks in which somebody starts 4 GPUs at every full hour.
func (w *home) writeHistory() {
	w.t.Helper()
	var b strings.Builder
	b.WriteString("job_id,user,group,gpus,submit_ts,duration_s,status\n")
	for at := monday.Add(-21 * 24 * time.Hour); at.Before(monday); at = at.Add(time.Hour) {
		fmt.Fprintf(&b, "job-%d,ada,nlp,4,%d,1800,completed\n", at.Unix(), at.Add(5*time.Minute).Unix())
	}
	require.NoError(w.t, os.WriteFile(w.pathOf("jobs.csv"), []byte(b.String()), 0o600))
}

func (w *home) pathOf(name string) string { return filepath.Join(w.dir, name) }

// writeConfig writes the agent's configuration: observe, unless more says otherwise.
func (w *home) writeConfig(more string) {
	w.t.Helper()
	text := fmt.Sprintf("%spool: lab\nstate_dir: %s\nsources:\n  - {kind: jobs, path: %s, format: csv}\n  - {kind: "+
		"log, path: %s}\n"+
		"forecast: {horizon: 4h}\nplace: {wait_worth: 500}\n", more, w.pathOf("state"), w.pathOf("jobs.csv"),
		w.pathOf("train.log"))
	require.NoError(w.t, os.WriteFile(w.pathOf("agent.yaml"), []byte(text), 0o600))
}

// autoConfig is the part of a configuration that places.
func (w *home) autoConfig() string {
	return fmt.Sprintf("mode: auto\napi: {endpoint: '%s', key: %s}\n", w.url, w.key)
}

// runCommand runs one command line with the configuration.
func (w *home) runCommand(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	root := newRoot(outside{clock: w.clock, getenv: func(string) string { return w.dir }})
	root.SetArgs(append(args, "--config", w.pathOf("agent.yaml")))
	root.SetOut(&out)
	root.SetErr(&errs)
	code = executeCommand(ctx, root)
	return out.String(), errs.String(), code
}

// listReserved lists what the control plane was asked for and has not given up.
func (w *home) listReserved() []contract.Reservation {
	w.t.Helper()
	all, err := client.All(w.client.Reservations(context.WithoutCancel(w.t.Context()), client.Filter{}))
	require.NoError(w.t, err)
	return all
}
