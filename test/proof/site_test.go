package proof_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

// site is an installation that is reached over HTTP: some servers, each with a
// store and a ledger of its own, on one database.
type site struct {
	t       *testing.T
	ledgers []*verbs.Ledger
	clients []*client.Client // one for each server
	urls    []string
	key     string
	pool    ledger.Pool
	org     string
}

// want says what a site has.
type want struct {
	servers, nodes, perNode, quota int
}

var peppers = "1:" + strings.Repeat("5a", 32)

func newSite(t *testing.T, url string, w want) *site {
	t.Helper()
	s := &site{t: t}
	pepper, err := keys.ParsePepper(peppers)
	require.NoError(t, err)
	key, secret, err := auth.Minter{Environment: "test", Pepper: pepper,
		Random: rand.Reader}.Mint(ledger.Key{Name: "root"})
	require.NoError(t, err)
	for i := range w.servers {
		l := openLedger(t, url, uint64(i), i == 0)
		s.ledgers = append(s.ledgers, l)
		if i == 0 {
			s.bootstrapTenant(key, w)
		}
		s.startServer(l, pepper, secret.Reveal())
	}
	return s
}

func openLedger(t *testing.T, url string, seed uint64, migrate bool) *verbs.Ledger {
	t.Helper()
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: url, Seed: seed})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	if migrate {
		require.NoError(t, store.Migrate(t.Context()))
	}
	// With so long a guard every reservation of these tests may be claimed at once.
	return verbs.New(store, ids.UUID{}, ledger.Config{CheckEvery: time.Millisecond,
		Policy: plan.Policy{Guard: 72 * time.Hour}})
}

func (s *site) bootstrapTenant(key ledger.Key, w want) {
	s.t.Helper()
	ctx := s.t.Context()
	made, err := s.ledgers[0].Bootstrap(ctx, "acme", quota.Limits{GPUs: w.quota, SpeculationPerDay: 1000 * money.USD},
		key)
	require.NoError(s.t, err)
	require.True(s.t, made)
	s.pool, err = s.ledgers[0].CreatePool(ctx, ledger.SystemActor("test"), capacity.Pool{
		Name: "lab", Provisioner: "sim", Type: "gpu", Model: "h100", PerNode: w.perNode, MemoryMiB: 81920,
		Price: 2 * money.USD, MaxNodes: w.nodes,
		Simulated: true, Timers: capacity.Timers{WarmHold: time.Hour, IdleRelease: time.Hour,
			MaxLease: 7 * 24 * time.Hour},
	}, learned.BootTimes{Prior50: time.Second, Prior95: time.Second})
	require.NoError(s.t, err)
	found, err := s.ledgers[0].Authenticate(ctx, key.ID)
	require.NoError(s.t, err)
	s.org = found[0].Key.OrganizationID
}

// startServer starts one server of the site.
func (s *site) startServer(l *verbs.Ledger, pepper keys.Pepper, key string) {
	s.t.Helper()
	unlimited := auth.Rate{PerSecond: -1}
	handler, err := server.New(server.Config{Ledger: l, Peppers: []keys.Pepper{pepper}, Environment: "test",
		Limits: server.Limits{Reads: unlimited, Writes: unlimited, OrganizationWrites: unlimited, Agents: unlimited,
			Failures: unlimited}})
	require.NoError(s.t, err)
	up := httptest.NewServer(handler)
	s.t.Cleanup(up.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	s.t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(up.URL, key, &http.Client{Transport: transport, Timeout: time.Minute})
	require.NoError(s.t, err)
	s.clients, s.urls, s.key = append(s.clients, c), append(s.urls, up.URL), key
}

// warmPool brings up all nodes of the pool, as a worker would whose provider boots at
// once, and ends when all are ready: nothing plans afterwards.
func (s *site) warmPool(nodes int) {
	s.t.Helper()
	ctx, l := s.t.Context(), s.ledgers[0]
	_, err := l.UpdatePool(ctx, ledger.SystemActor("test"), s.pool.ID, s.pool.DefinitionVersion,
		func(g *capacity.Pool) { g.MinNodes = nodes })
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		due, err := l.Dispatch(ctx, 100, time.Minute)
		require.NoError(s.t, err)
		for _, task := range due {
			task, err = l.ClaimTask(ctx, task.ID, task.Attempt, time.Hour)
			require.NoError(s.t, err)
			require.NoError(s.t, s.handleTask(ctx, task))
		}
		ready := 0
		for _, n := range s.readRows(false).Pools[0].Nodes {
			if n.State() == node.Ready {
				ready++
			}
		}
		return ready == nodes
	}, time.Minute, time.Millisecond)
}

func (s *site) handleTask(ctx context.Context, task ledger.Task) error {
	g, l := ledger.Guard{TaskID: task.ID, Fence: task.Fence}, s.ledgers[0]
	machine := ledger.Instance{ProviderID: "machine of " + task.Subject}
	for i := range s.pool.PerNode {
		machine.Devices = append(machine.Devices, capacity.Device{UUID: task.Subject + "-" + string(rune('0'+i)),
			Index: i,
			Model: "h100", MemoryMiB: 81920})
	}
	switch task.Kind {
	case ledger.TaskPlan:
		_, err := l.Plan(ctx, g, task.Subject)
		return err
	case ledger.TaskCreateNode:
		if _, err := l.BeginCreate(ctx, g, task.Subject); err != nil {
			return err
		}
		return l.ReportCreated(ctx, g, task.Subject, machine)
	case ledger.TaskCheckNode:
		return l.ReportUp(ctx, g, task.Subject, machine)
	default:
		return l.FinishTask(ctx, g)
	}
}

// readRows reads what is stored.
func (s *site) readRows(history bool) (rows invariants.Rows) {
	s.t.Helper()
	require.NoError(s.t, s.ledgers[0].Store().Read(s.t.Context(), func(r ledger.Reader) (err error) {
		rows, err = invariants.Gather(r, history)
		return err
	}))
	return rows
}

func (s *site) requireSound() {
	s.t.Helper()
	requireSound(s.t, s.readRows)
}

// requireSound checks rows with their history, and returns them. PostgreSQL holds events
// back as long as anybody on the server, of another database even, has an older
// transaction open.
func requireSound(t require.TestingT, read func(history bool) invariants.Rows) (rows invariants.Rows) {
	var found []invariants.Violation
	if !assert.Eventually(t, func() bool {
		rows = read(true)
		found = invariants.Check(rows)
		return len(found) == 0
	}, time.Minute, 10*time.Millisecond) {
		require.Empty(t, found)
	}
	return rows
}

// patience is how long a request may be repeated on a slow, busy machine.
const patience = 2 * time.Minute

// repeatUntilAnswered sends one request under one key until the server answers it: on a busy
// machine it may give one up. What was given up and took effect all the same is
// answered from what was stored.
func repeatUntilAnswered[T any](ctx context.Context, send func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(client.WithIdempotencyKey(ctx, ids.UUID{}.New("try")), patience)
	defer cancel()
	for {
		out, err := send(ctx)
		var problem *client.Error
		if err == nil || ctx.Err() != nil || errors.As(err, &problem) &&
			problem.Problem.Status < http.StatusInternalServerError {
			return out, err
		}
	}
}
