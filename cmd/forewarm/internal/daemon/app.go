package daemon

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/memory"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/ledgermetrics"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/builtin"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue"
)

// app is one process of the control plane with its adapters picked.
type app struct {
	cfg      Config
	log      *slog.Logger
	clock    clock.Clock
	registry *prometheus.Registry
	metrics  *obs.Metrics
	store    *sqlledger.Store
	ledger   *verbs.Ledger
	cycles   *cycleRecorder // may be nil
	pepper   keys.Pepper
	minter   auth.Minter
	provs    []provisioners.Provisioner
	version  string
	context  string // under which the first key is saved
}

// newApp opens the ledger and the provisioners. environment is the middle part
// of the keys it mints.
func newApp(ctx context.Context, cfg Config, environment string) (*app, error) {
	memory.Relax()
	log, err := cfg.logger, error(nil)
	if log == nil {
		if log, err = cfg.Log.newLogger(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	a := &app{cfg: cfg, log: log, clock: clock.System{}, registry: obs.NewRegistry(),
		context: "local"}
	if a.metrics, err = obs.NewMetrics(a.registry); err != nil {
		return nil, fmt.Errorf("making metrics: %w", err)
	}
	showFromStart(a.metrics)
	if a.pepper, err = loadPepper(cfg); err != nil {
		return nil, err
	}
	a.minter = auth.Minter{Environment: environment, Pepper: a.pepper, Random: rand.Reader}
	if err := a.connectLedger(ctx); err != nil {
		return nil, err
	}
	a.openVerbs(ledgermetrics.Observe(a.store, a.metrics))
	if err := a.registerGauges(); err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	if a.provs, err = a.makeProvisioners(); err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	if err := a.knowsProvisioners(); err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	return a, nil
}

// openVerbs makes the ledger of what is stored, with what is derived from the pepper.
func (a *app) openVerbs(store ledger.Store) {
	settings := a.cfg.ledgerConfig()
	settings.WorkersApart = a.cfg.workersApart
	settings.Seals = ledger.NewSealKey(a.pepper.Derive("journal seals"))
	settings.SealMemory = a.cfg.sealMark(a.log)
	settings.PepperCheck = hex.EncodeToString(a.pepper.Derive("pepper check"))
	a.cycles = newCycleRecorder(a)
	a.cycles.recordFor(&settings)
	a.ledger = verbs.New(store, ids.UUID{}, settings)
}

// connectLedger opens the ledger, as soon as its database answers.
func (a *app) connectLedger(ctx context.Context) error {
	return a.cfg.wait.awaitService(ctx, a.databaseService(), func(ctx context.Context) (err error) {
		a.store, err = sqlledger.Open(ctx, sqlledger.Config{
			URL: a.cfg.databaseURL(), Clock: a.clock, Logger: a.log, Alone: a.cfg.alone, ReadOnly: a.cfg.readOnly,
			Seed: uint64(os.Getpid()), //nolint:gosec // a pid is not negative
		})
		if err != nil {
			return fmt.Errorf("opening the ledger at %s: %w", obs.ScrubURL(a.cfg.databaseURL()), err)
		}
		return nil
	})
}

// databaseService is what a start waits for first.
func (a *app) databaseService() service {
	return service{name: "the database at " + obs.ScrubURL(a.cfg.databaseURL()), log: a.log, missing: a.cfg.missing}
}

// loadPepper is the server's secret of key hashes: from the configuration, or from a
// file that the first start makes.
func loadPepper(cfg Config) (keys.Pepper, error) {
	if !cfg.Pepper.IsZero() {
		p, err := keys.ParsePepper(cfg.Pepper.Reveal())
		if err != nil {
			return p, cfg.valueError("pepper", err.Error(), "write the version and 32 bytes or more in hex or base64, as "+
				"1:$(openssl rand -hex 32) makes them")
		}
		return p, nil
	}
	path := filepath.Join(cfg.DataDir, "pepper")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		fresh := make([]byte, 32)
		if _, err := rand.Read(fresh); err != nil {
			return keys.Pepper{}, fmt.Errorf("drawing a pepper: %w", err)
		}
		text = []byte("1:" + hex.EncodeToString(fresh))
		err = writeNew(path, text)
		if errors.Is(err, fs.ErrExist) { // another process was first
			text, err = os.ReadFile(path)
		}
		if err != nil {
			return keys.Pepper{}, fmt.Errorf("keeping the pepper: %w", err)
		}
	} else if err != nil {
		return keys.Pepper{}, fmt.Errorf("reading the pepper: %w", err)
	}
	return keys.ParsePepper(string(bytes.TrimSpace(text)))
}

func (a *app) makeProvisioners() ([]provisioners.Provisioner, error) {
	var provs []provisioners.Provisioner
	for i := range a.cfg.Provisioners {
		p := &a.cfg.Provisioners[i]
		at := fmt.Sprintf("provisioners.%d", i)
		decode := func(into any) error {
			return strictyaml.DecodeNode(a.cfg.file.path, fmt.Sprintf("provisioners[%d].config", i), &p.Config, into)
		}
		prov, err := builtin.New(p.Kind, decode, builtin.Deps{Clock: a.clock, StateDir: a.cfg.DataDir})
		var bad *strictyaml.Error
		switch {
		case errors.As(err, &bad):
			return nil, bad
		case err != nil:
			return nil, a.cfg.valueError(at, err.Error(), "change what the message names")
		case slices.ContainsFunc(provs, func(o provisioners.Provisioner) bool { return o.Name() == prov.Name() }):
			return nil, a.cfg.valueError(at, fmt.Sprintf("the name %q is taken", prov.Name()),
				"give each provisioner its own name in its config")
		}
		provs = append(provs, prov)
	}
	return provs, nil
}

// knowsProvisioners refuses pools of provisioners that the same file does not
// declare, in every process that reads it.
func (a *app) knowsProvisioners() error {
	known := func(name string) bool {
		return slices.ContainsFunc(a.provs, func(p provisioners.Provisioner) bool { return p.Name() == name })
	}
	if len(a.provs) == 0 { // a server's file may leave them to the workers'
		return nil
	}
	for i, p := range a.cfg.Pools {
		if !known(p.Provisioner) {
			return a.noProvisioner(p.Provisioner, fmt.Sprintf("pools.%d", i))
		}
		for j, other := range p.Alternates {
			if !known(other.Provisioner) {
				return a.noProvisioner(other.Provisioner, fmt.Sprintf("pools.%d.alternates.%d", i, j))
			}
		}
	}
	return nil
}

// prepareInstallation brings the schema up to date, makes the first key and the declared
// pools, and returns the first key's text if it was made now.
func (a *app) prepareInstallation(ctx context.Context) (obs.Secret, ledger.Started, error) {
	pools, err := a.declaredPools(ctx)
	if err != nil {
		return obs.Secret{}, ledger.Started{}, err
	}
	if err := a.migrateSchema(ctx); err != nil {
		return obs.Secret{}, ledger.Started{}, err
	}
	if err := a.checkPepper(ctx); err != nil {
		return obs.Secret{}, ledger.Started{}, err
	}
	first, text, err := a.minter.Mint(ledger.Key{Name: "first key"})
	if err != nil {
		return obs.Secret{}, ledger.Started{}, fmt.Errorf("minting the first key: %w", err)
	}
	started, err := a.bootstrapLedger(ctx, first, pools)
	if err != nil || !started.FirstKey {
		return obs.Secret{}, started, err
	}
	return text, started, nil
}

func (a *app) migrateSchema(ctx context.Context) error {
	if err := a.store.Migrate(ctx); err != nil {
		return fmt.Errorf("migrating the ledger: %w", err)
	}
	return nil
}

// bootstrapLedger makes, in one transaction, what is not there yet of the first key and the
// declared pools, and returns what it made.
func (a *app) bootstrapLedger(ctx context.Context, first ledger.Key, pools []ledger.NewPool) (ledger.Started, error) {
	started, err := a.ledger.Start(ctx, ledger.FirstStart{
		Organization: a.cfg.Organization.Name, Limits: a.cfg.quotaLimits(), Operator: first, Pools: pools,
	})
	var pool *ledger.PoolError
	var invalid *ledger.InvalidError
	switch {
	case errors.As(err, &pool) && errors.As(err, &invalid):
		key := strings.TrimSuffix(invalid.Field, "_seconds") // the file's durations have units
		return started, a.cfg.valueError(fmt.Sprintf("pools.%d.%s", pool.Index, key), invalid.Rule,
			cmp.Or(invalid.Fix, "correct the value"))
	case err != nil:
		return started, fmt.Errorf("making the first key and the pools: %w", err)
	}
	return started, nil
}

// declaredPools checks the declared pools against what their provisioners offer and
// completes them. What a pool is is later changed through the API, which knows
// what is promised in it.
func (a *app) declaredPools(ctx context.Context) ([]ledger.NewPool, error) {
	pools := make([]ledger.NewPool, len(a.cfg.Pools))
	for i, p := range a.cfg.Pools {
		at := fmt.Sprintf("pools.%d", i)
		offer, err := a.findOffer(ctx, p.poolDefinition(), at)
		if err != nil {
			return nil, err
		}
		def, err := a.completePool(p.poolDefinition(), offer, at)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(settleUse(a.cfg, &def, p.Use, offer, at), checkAccess(a.cfg, p.Access, at),
			checkIsolation(a.cfg, p.Isolation, at), checkMinDriver(a.cfg, p.MinDriver, at)); err != nil {
			return nil, err
		}
		if def.Observed {
			a.cfg.Pools[i].Use = useObserved
		}
		if def.Alternates, err = a.completeAlternates(ctx, def, p.Alternates, at); err != nil {
			return nil, err
		}
		pools[i] = ledger.NewPool{Definition: def, Prior: learned.BootTimes{Prior50: offer.Boot.P50,
			Prior95: offer.Boot.P95}}
	}
	return pools, nil
}

// findOffer finds the machine that a pool is made of.
func (a *app) findOffer(ctx context.Context, def capacity.Pool, at string) (provisioners.Offer, error) {
	i := slices.IndexFunc(a.provs, func(o provisioners.Provisioner) bool { return o.Name() == def.Provisioner })
	if i < 0 {
		return provisioners.Offer{}, a.noProvisioner(def.Provisioner, at)
	}
	offers, err := a.provs[i].Offers(ctx)
	if err != nil {
		return provisioners.Offer{}, fmt.Errorf("asking provisioner %q what it offers: %w", def.Provisioner, err)
	}
	var known []string
	for _, o := range offers {
		if o.Type == def.Type && o.Region == def.Region {
			return o, nil
		}
		known = append(known, fmt.Sprintf("%q in region %q", o.Type, o.Region))
	}
	return provisioners.Offer{}, a.cfg.valueError(at+".instance_type",
		fmt.Sprintf("provisioner %q offers no %q in region %q", def.Provisioner, def.Type, def.Region),
		"choose one that it offers: "+strings.Join(known, ", "))
}

// completePool takes from the offer what a pool leaves out, and refuses what no
// machine of the offer could be: the health gate would never let one pass.
func (a *app) completePool(def capacity.Pool, o provisioners.Offer, at string) (capacity.Pool, error) {
	gpus := o.GPUs * def.Shares()
	def.PerNode, def.Model, def.Price = cmp.Or(def.PerNode, gpus), cmp.Or(def.Model, o.Model),
		cmp.Or(def.Price, o.Price)
	def.MemoryMiB = cmp.Or(def.MemoryMiB, o.MemoryMiB/def.Shares())
	def.Simulated, def.MinBilling = o.Simulated, o.MinBilling
	if def.PerNode != gpus {
		has := fmt.Sprintf("instance type %s has this many GPUs", o.Type)
		if def.Shares() > 1 {
			has = fmt.Sprintf("instance type %s has %d GPUs of %d shares each, and shares are what is counted", o.Type, o.GPUs,
				def.Shares())
		}
		return def, a.cfg.valueError(at+".gpus_per_node", fmt.Sprintf("is %d", def.PerNode),
			fmt.Sprintf("write %d: %s", gpus, has))
	}
	if most := o.MemoryMiB / def.Shares(); o.MemoryMiB > 0 && def.MemoryMiB > most {
		return def, a.cfg.valueError(at+".gpu_memory_mib", fmt.Sprintf("is %d", def.MemoryMiB),
			fmt.Sprintf("write %d: a GPU of instance type %s, or a share of one, has no more", most, o.Type))
	}
	if !strings.EqualFold(def.Model, o.Model) {
		return def, a.cfg.valueError(at+".model", fmt.Sprintf("is %q", def.Model),
			fmt.Sprintf("write %q: that is the model of the GPUs of instance type %s", o.Model, o.Type))
	}
	return def, nil
}

// completeAlternates completes the other places where a pool's machines can be had. They
// must be of the same GPUs.
func (a *app) completeAlternates(ctx context.Context, def capacity.Pool, declared []PoolSource,
	at string) ([]capacity.Alternate, error) {
	var all []capacity.Alternate
	for i, d := range declared {
		here := fmt.Sprintf("%s.alternates.%d", at, i)
		same := def
		same.Provisioner, same.Region, same.Type, same.Price = d.Provisioner, d.Region, d.InstanceType,
			money.MicroUSD(d.Price)
		offer, err := a.findOffer(ctx, same, here)
		if err != nil {
			return nil, err
		}
		if same, err = a.completePool(same, offer, here); err != nil {
			return nil, err
		}
		all = append(all, capacity.Alternate{Offering: same.Offering(), Boot50: offer.Boot.P50, Boot95: offer.Boot.P95})
	}
	return all, nil
}

// newWorker makes the worker of this process. base is the URL of an API in the same process;
// empty: there is none.
func (a *app) newWorker(q queue.Queue, base string) (*worker.Worker, error) {
	cfg := a.cfg.workerConfig()
	at := cmp.Or(a.cfg.Server.PublicURL, base)
	programs, err := preparePrograms(a, at)
	if err != nil {
		return nil, err
	}
	cfg.JoinToken = daemonJoin(a, at, programs)
	cfg.Clock, cfg.Logger, cfg.Metrics = a.clock, a.log, a.metrics
	if cfg.Holder, cfg.Host, err = dataDirID(a.cfg.DataDir); err != nil {
		return nil, err
	}
	cfg.Rand = mrand.New(mrand.NewPCG(uint64(os.Getpid()),
		2)) //nolint:gosec // jitter needs no secrecy, and a pid is not negative
	return worker.New(a.ledger, q, a.provs, cfg)
}

// newDaemon is how long the daemon of a new node may take to come.
const newDaemon = 20 * time.Second

// newServer makes the API of this process; change may adjust its configuration.
func (a *app) newServer(change func(*server.Config)) (*server.Server, error) {
	cfg := server.Config{
		Ledger: a.ledger, Clock: a.clock, Logger: a.log, Metric: a.metrics, Gather: a.registry,
		Peppers:   []keys.Pepper{a.pepper},
		NewDaemon: newDaemon, Environment: a.minter.Environment, KeyLife: a.cfg.Keys.DefaultLife.Std(), Version: a.version,
	}
	e, err := a.cfg.newEdge()
	if err != nil {
		return nil, err
	}
	e.configureServer(&cfg)
	if change != nil {
		change(&cfg)
	}
	return server.New(cfg)
}
