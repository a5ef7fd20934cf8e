package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/egress"
	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/evidence"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	provsim "github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

// origin is the base URL that in-memory requests are sent to.
const origin = "http://127.0.0.1:8787"

// World is a whole installation in virtual time.
type World struct {
	opt    Options
	clock  *clock.Manual
	store  *sqlledger.Store
	ledger *verbs.Ledger
	cloud  *provsim.Cloud
	worker *worker.Worker
	door   http.RoundTripper
	mint   auth.Minter
	agenda agenda
}

// newWorld starts an empty installation at an instant.
func newWorld(ctx context.Context, at time.Time, opt Options) (*World, error) {
	w := &World{opt: opt, clock: clock.NewManual(at)}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	var err error
	w.store, err = sqlledger.Open(ctx, sqlledger.Config{URL: "sqlite://:memory:", Clock: w.clock, Logger: log,
		Unsafe: true, Seed: opt.Seed})
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	if err := w.store.Migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("migrating the ledger: %w", err), w.store.Close())
	}
	w.ledger = verbs.New(w.store, &ids.Sequence{}, ledger.Config{
		// The benchmark knows no caps, and a keep-alive there does not learn.
		Policy:      plan.Policy{Guard: time.Second, RemoveFloor: unlimited, Evidence: math.MaxFloat64},
		ConfirmGone: time.Second, CheckEvery: opt.Boot, RemoveEvery: time.Second, VerifyEvery: 100 * 24 * time.Hour,
		SweepEvery: 100 * 24 * time.Hour,
	})
	w.cloud, err = provsim.New(provsim.Config{
		Name: "sim", Seed: opt.Seed, Terminating: time.Second, Remembered: time.Second,
		Offers: []provsim.Offer{{Type: "gpu-1", Model: "sim", GPUs: opt.PerNode, MemoryMiB: 81920,
			Price: provisioners.Price(money.USD),
			Boot:  provsim.Boot{P50: opt.Boot, P95: opt.Boot, Min: opt.Boot}}},
	}, w.clock)
	if err != nil {
		return nil, fmt.Errorf("making the simulated cloud: %w", err)
	}
	w.worker, err = worker.New(w.ledger, memqueue.New(log), []provisioners.Provisioner{w.cloud}, worker.Config{
		Deployment: "replay", Clock: w.clock, Logger: log, Rand: rand.New(rand.NewPCG(opt.Seed, 1)), Lease: time.Hour,
		ReapEvery: time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("making the worker: %w", err)
	}
	return w, w.openServer(ctx, log)
}

// openServer makes the router and the operator who administers through it.
func (w *World) openServer(ctx context.Context, log *slog.Logger) error {
	pepper, err := keys.ParsePepper("1:" + fmt.Sprintf("%064x", w.opt.Seed+1))
	if err != nil {
		return fmt.Errorf("making a pepper: %w", err)
	}
	w.mint = auth.Minter{Environment: "sim", Pepper: pepper, Random: rand.NewChaCha8([32]byte{byte(w.opt.Seed)})}
	operator, _, err := w.mint.Mint(ledger.Key{Name: "operator", Role: ledger.Operator, Kind: ledger.PersonKey})
	if err != nil {
		return fmt.Errorf("minting the operator's key: %w", err)
	}
	if _, err := w.ledger.Bootstrap(ctx, "operations", quota.Limits{}, operator); err != nil {
		return fmt.Errorf("bootstrapping: %w", err)
	}
	handler, err := server.New(server.Config{
		Ledger: w.ledger, Clock: w.clock, Logger: log, IDs: &ids.Sequence{}, Peppers: []keys.Pepper{pepper},
		Limits: server.Limits{Reads: unlimitedRate, Writes: unlimitedRate, Agents: unlimitedRate},
	})
	if err != nil {
		return fmt.Errorf("making the router: %w", err)
	}
	w.door = transport{handler}
	return nil
}

func (w *World) newClient(key obs.Secret) (*client.Client, error) {
	return client.New(origin, key.Reveal(), &http.Client{Transport: w.door})
}

// tenant is one group of the trace: an organization with a pool of its own,
// which never shares GPUs with another, and perhaps an agent.
type tenant struct {
	name   string
	pool   string
	poolID string
	user   *client.Client
	agent  *agent.Agent
	next   time.Time // when the agent is to look; zero is not set
}

// unlimitedRate lets every request through.
var unlimitedRate = auth.Rate{PerSecond: -1}

// unlimited is more than a replay can use: it measures waits, not quotas.
const unlimited = 20_000

func (w *World) newTenant(ctx context.Context, i int, name string, nodes int) (*tenant, error) {
	actor := ledger.SystemActor("replay")
	org, err := w.ledger.CreateOrganization(ctx, actor, fmt.Sprintf("tenant-%02d %s", i, name),
		quota.Limits{GPUs: unlimited, SpeculationPerDay: 1_000_000 * money.USD})
	if err != nil {
		return nil, fmt.Errorf("creating organization: %w", err)
	}
	pool, err := w.ledger.CreatePool(ctx, actor, capacity.Pool{
		Name: fmt.Sprintf("pool-%02d", i), Provisioner: "sim", Type: "gpu-1", Model: "sim", PerNode: w.opt.PerNode,
		MemoryMiB: 81920,
		Price:     money.MicroUSD(w.opt.PerNode) * money.USD, MaxNodes: nodes, MaxCreates: unlimited, Simulated: true,
		Timers: capacity.Timers{IdleRelease: w.opt.KeepAlive, WarmHold: 20 * time.Minute,
			MaxLease: 365 * 24 * time.Hour},
	}, learned.BootTimes{Prior50: w.opt.Boot, Prior95: w.opt.Boot})
	if err != nil {
		return nil, fmt.Errorf("creating pool: %w", err)
	}
	t := &tenant{name: name, pool: pool.Name, poolID: pool.ID}
	if t.user, err = w.keyFor(ctx, ledger.Key{OrganizationID: org.ID, Name: "user", Kind: ledger.PersonKey,
		Role: ledger.Member}); err != nil {
		return nil, err
	}
	if !w.opt.Agent {
		return t, nil
	}
	control, err := w.keyFor(ctx, ledger.Key{OrganizationID: org.ID, Name: "agent", Kind: ledger.AgentKey,
		Role: ledger.Member, Caps: quota.Caps{
			MaxGPUs: unlimited, MaxPerDay: 1_000_000 * money.USD, MaxLead: 7 * 24 * time.Hour,
			MaxWindow: 7 * 24 * time.Hour,
		}})
	if err != nil {
		return nil, err
	}
	t.agent, err = w.newAgent(t, control)
	return t, err
}

func (w *World) keyFor(ctx context.Context, k ledger.Key) (*client.Client, error) {
	k, secret, err := w.mint.Mint(k)
	if err != nil {
		return nil, fmt.Errorf("minting a key: %w", err)
	}
	if _, err := w.ledger.CreateKey(ctx, ledger.SystemActor("replay"), k); err != nil {
		return nil, fmt.Errorf("creating a key: %w", err)
	}
	if k.Kind != ledger.AgentKey {
		return w.newClient(secret)
	}
	// The agent's own door: it counts and refuses as it does outside.
	out, err := egress.New(egress.Config{ControlPlane: origin, Transport: w.door, Clock: w.clock})
	if err != nil {
		return nil, fmt.Errorf("making the agent's egress: %w", err)
	}
	return client.New(origin, secret.Reveal(), out.ControlPlane())
}

// newAgent makes the real agent with windows of a boot and a tick, the width in
// which its baseline decides.
func (w *World) newAgent(t *tenant, control *client.Client) (*agent.Agent, error) {
	window := w.opt.Boot + time.Minute
	predictor, err := predict.New(predict.Config{
		Series: forecast.Config{Window: window}, Window: window, Horizon: 3 * window, MaxGPUs: 1000,
		Terms: evidence.Terms{WaitPrice: w.opt.WaitWorth, GPUPrice: 1, Boot: w.opt.Boot},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("making the predictor: %w", err)
	}
	scrub, err := redact.New(redact.Config{})
	if err != nil {
		return nil, fmt.Errorf("making the redactor: %w", err)
	}
	return agent.New(agent.Config{
		Tenant: t.name, PoolID: t.poolID, Mode: agent.Auto, Clock: w.clock, Predict: predictor, Scrub: scrub,
		Control: control,
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Place:   place.Config{WaitWorth: w.opt.WaitWorth, Boot: w.opt.Boot, MaxGPUs: 1000},
	})
}
