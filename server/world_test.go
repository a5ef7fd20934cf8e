package server_test

import (
	"bytes"
	"encoding/json"

	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

var begin = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC) // a Monday

// world is a server over a real SQLite ledger, on a clock that stands still.
type world struct {
	t      testing.TB
	clock  *clock.Manual
	ledger *verbs.Ledger
	server *server.Server
	// handler is the server, compared with its description at every exchange.
	handler http.Handler
	minter  auth.Minter
	log     *bytes.Buffer
	keys    map[string]string                       // by name
	place   func(nodeID string, m *ledger.Instance) // changes the machine of a node; nil: none
}

// unlimited takes rate limits out of the way of tests that are about something
// else.
var unlimited = server.Limits{
	Reads: auth.Rate{PerSecond: -1}, Writes: auth.Rate{PerSecond: -1}, Agents: auth.Rate{PerSecond: -1},
	OrganizationWrites: auth.Rate{PerSecond: -1}, Failures: auth.Rate{PerSecond: -1},
	Links: auth.Rate{PerSecond: -1}, Logins: auth.Rate{PerSecond: -1}, Node: auth.Rate{PerSecond: -1},
	Nodes: auth.Rate{PerSecond: -1},
}

func newWorld(t testing.TB, change ...func(*server.Config)) *world {
	t.Helper()
	w := &world{t: t, clock: clock.NewManual(begin), log: &bytes.Buffer{}, keys: map[string]string{}}
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://:memory:", Clock: w.clock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	w.ledger = verbs.New(store, &ids.Sequence{}, ledger.Config{})
	pepper, err := keys.ParsePepper("1:" + strings.Repeat("5a", 32))
	require.NoError(t, err)
	cfg := server.Config{
		Ledger: w.ledger, Clock: w.clock, Logger: obs.NewLogger(w.log, obs.Config{}), IDs: &ids.Sequence{},
		Random: rand.NewChaCha8([32]byte{1}), Peppers: []keys.Pepper{pepper}, Environment: "test",
		Version: "0.0.0-test", Limits: unlimited,
	}
	for _, f := range change {
		f(&cfg)
	}
	w.minter = auth.Minter{Environment: "test", Pepper: pepper, Random: rand.NewChaCha8([32]byte{2})}
	root, secret, err := w.minter.Mint(ledger.Key{Name: "root"})
	require.NoError(t, err)
	limits := quota.Limits{GPUs: 16, SpeculationPerDay: 100 * money.USD}
	made, err := w.ledger.Bootstrap(t.Context(), "acme", limits, root)
	require.NoError(t, err)
	require.True(t, made)
	w.keys["root"] = secret.Reveal()
	w.server, err = server.New(cfg)
	require.NoError(t, err)
	w.handler = described{t, w.server.Description(), w.server}
	return w
}

// send sends one request. The key is a name in keys, or empty.
func (w *world) send(key, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost"
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+w.keys[key])
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	out := httptest.NewRecorder()
	w.handler.ServeHTTP(out, r)
	return out
}

// ask sends a request that must succeed and decodes its answer.
func ask[T any](w *world, key, method, path, body string, headers ...string) T {
	w.t.Helper()
	out := w.send(key, method, path, body, headers...)
	require.Less(w.t, out.Code, 300, out.Body.String())
	var v T
	require.NoError(w.t, json.Unmarshal(out.Body.Bytes(), &v))
	return v
}

// refuse sends a request that must fail and returns the problem.
func (w *world) refuse(key, method, path, body string, headers ...string) contract.Problem {
	w.t.Helper()
	out := w.send(key, method, path, body, headers...)
	require.GreaterOrEqual(w.t, out.Code, 400, out.Body.String())
	require.Equal(w.t, contract.ProblemContentType, out.Header().Get("Content-Type"), out.Body.String())
	var p contract.Problem
	require.NoError(w.t, json.Unmarshal(out.Body.Bytes(), &p))
	require.Equal(w.t, out.Code, p.Status)
	require.Equal(w.t, contract.ProblemBase+p.Code, p.Type)
	require.NotEmpty(w.t, p.RequestID)
	require.NotRegexp(w.t, notOurWords, out.Body.String())
	return p
}

// notOurWords are what libraries say of a wrong value.
var notOurWords = regexp.MustCompile(`expected |\binvalid (integer|float|boolean|date)|e\+\d\d|to match pattern|json:`)

const poolBody = `{"name":"lab","provisioner":"sim","model":"a100-80g","gpus_per_node":4,"gpu_memory_mib":81920,` +
	`"price_per_node_hour":{"amount":"8.40","currency":"USD"},"max_nodes":2,"simulated":true}`

// createPool makes the pool of most tests: two nodes of four GPUs.
func (w *world) createPool() contract.Pool {
	w.t.Helper()
	return ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools", poolBody)
}

// createKey makes a key in the first organization and remembers it by name.
func (w *world) createKey(name, role string) contract.Key {
	w.t.Helper()
	return w.keepKey(name, `{"name":"`+name+`","kind":"person","role":"`+role+`"}`)
}

func (w *world) keepKey(name, body string) contract.Key {
	w.t.Helper()
	made := ask[contract.KeyCreated](w, "root", http.MethodPost, "/v1/keys", body)
	w.keys[name] = made.Secret
	return made.Key
}

const agentCaps = `{"max_gpus":4,"max_per_day":{"amount":"20","currency":"USD"},"max_lead_seconds":86400,` +
	`"max_window_seconds":14400}`

// createAgentKey makes an agent's key.
func (w *world) createAgentKey(name string) contract.Key {
	w.t.Helper()
	return w.keepKey(name, `{"name":"`+name+`","kind":"agent","role":"member","caps":`+agentCaps+`}`)
}

// createTenant makes another organization with an admin's key.
func (w *world) createTenant(name string) contract.Organization {
	w.t.Helper()
	o := ask[contract.Organization](w, "root", http.MethodPost, "/v1/organizations",
		`{"name":"`+name+`","limits":{"max_gpus":8,"speculation_per_day":{"amount":"10","currency":"USD"}}}`)
	w.keepKey(name, `{"name":"`+name+`","kind":"person","role":"admin","organization_id":"`+o.ID+`"}`)
	return o
}

// warmNodes brings up nodes of the pool as the planner and a worker would.
func (w *world) warmNodes(p contract.Pool, slots int) {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.ledger.UpdatePool(ctx, ledger.SystemActor("test"), p.ID, p.Version,
		func(g *capacity.Pool) { g.MinNodes = slots })
	require.NoError(w.t, err)
	w.runDueTasks(p)
}

// runDueTasks runs due tasks for six seconds, answering for a provider that boots at
// once.
func (w *world) runDueTasks(p contract.Pool) {
	w.t.Helper()
	ctx := w.t.Context()
	for range 6 {
		w.clock.Advance(time.Second)
		tasks, err := w.ledger.Dispatch(ctx, 100, time.Second)
		require.NoError(w.t, err)
		for _, task := range tasks {
			claimed, err := w.ledger.ClaimTask(ctx, task.ID, task.Attempt, time.Minute)
			require.NoError(w.t, err)
			w.runTask(claimed)
		}
	}
}

func (w *world) runTask(task ledger.Task) {
	w.t.Helper()
	ctx, g := w.t.Context(), ledger.Guard{TaskID: task.ID, Fence: task.Fence}
	machine := ledger.Instance{ProviderID: "m-" + task.Subject, Address: "10.0.0.1", Simulated: true}
	for i := range 4 {
		machine.Devices = append(machine.Devices, capacity.Device{UUID: task.Subject + "-gpu" + string(rune('0'+i)),
			Index: i, Model: "a100-80g", MemoryMiB: 81920})
	}
	if w.place != nil {
		w.place(task.Subject, &machine)
	}
	var err error
	switch task.Kind {
	case ledger.TaskPlan:
		_, err = w.ledger.Plan(ctx, g, task.Subject)
	case ledger.TaskCreateNode:
		if _, err = w.ledger.BeginCreate(ctx, g, task.Subject); err == nil {
			err = w.ledger.ReportCreated(ctx, g, task.Subject, machine)
		}
	case ledger.TaskCheckNode:
		err = w.ledger.ReportUp(ctx, g, task.Subject, machine)
	case ledger.TaskSchedules:
		err = w.ledger.Materialise(ctx, g)
	default:
		err = w.ledger.FinishTask(ctx, g)
	}
	require.NoError(w.t, err, task.Kind)
}

func newRequest(method, path, body string) (*http.Request, *httptest.ResponseRecorder) {
	return httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
}

// checkNamed fails for a field of a configuration that no test is about.
func checkNamed(t *testing.T, config any, tests map[string]func(*testing.T), same map[string]string, without []string) {
	t.Helper()
	typ := reflect.TypeOf(config)
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if other, ok := same[name]; ok {
			name = other
		}
		_, tested := tests[name]
		require.True(t, tested || slices.Contains(without, name), "no test shows what %s changes", typ.Field(i).Name)
	}
}
