// Package daemon is the long-running side of the forewarm command: it reads the
// configuration, picks the adapters and runs the control plane, whole or in
// parts. It is the only place that knows what a database or Redis URL means.
package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	neturl "net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/asynqueue"
	"github.com/forewarm/forewarm/worker/reconcile"
)

// Config is forewarm.yaml. Environment variables, then flags, go before it.
type Config struct {
	Listen string `yaml:"listen"` // FOREWARM_LISTEN
	// DataDir, FOREWARM_DATA_DIR, has the database, keys and simulated machines of an
	// embedded run.
	DataDir  string     `yaml:"data_dir"`
	Database obs.Secret `yaml:"database"` // FOREWARM_DATABASE: sqlite:///path or postgres://…; empty: in data_dir
	Redis    obs.Secret `yaml:"redis"`    // FOREWARM_REDIS: redis://…; empty: a queue inside the process
	// Pepper, FOREWARM_PEPPER, is <version>:<hex> of at least 32 bytes. Empty: one is made
	// and kept in data_dir.
	Pepper obs.Secret `yaml:"pepper"`
	// MetricsListen, FOREWARM_METRICS_LISTEN, is where a worker shows its metrics,
	// which need no key there; empty: nowhere. A server shows its own beside the API.
	MetricsListen string `yaml:"metrics_listen"`
	OpenBind      bool   `yaml:"open_bind"` // allow plain HTTP on an address that is not this machine's own

	// TenantsSeeNodes shows every node and GPU to every tenant, though not whose.
	TenantsSeeNodes bool `yaml:"tenants_see_nodes"`
	// AwaitDaemons keeps nodes whose machines bring a daemon from being ready before it has reported.
	AwaitDaemons bool `yaml:"await_daemons"`

	Server       Server        `yaml:"server"`
	Keys         Keys          `yaml:"keys"`
	Log          Log           `yaml:"log"`
	Deployment   string        `yaml:"deployment"` // the tag of this installation's machines
	Organization Organization  `yaml:"organization"`
	Timing       Timing        `yaml:"timing"`
	Scheduling   Scheduling    `yaml:"scheduling"`
	CycleRecords CycleRecords  `yaml:"cycle_records"`
	Provisioners []Provisioner `yaml:"provisioners"`
	Pools        []Pool        `yaml:"pools"`

	logger       *slog.Logger      // of the process, where it was needed early; nil: newApp makes it
	wait         patience          // for what the start needs
	missing      func(what string) // is told what is waited for; nil: nobody asks
	alone        bool              // this process is the whole installation
	workersApart bool              // workers are other processes
	readOnly     bool              // this process changes nothing in the database

	file struct { // what was read, to name the line of what turns out wrong later
		path string
		data []byte
	}
	origins map[string]string // the variables and flags that set a value in place of the file, by key
}

// Keys says how API keys are made.
type Keys struct {
	// DefaultLife is of a person's key made without an end; 0: server.DefaultKeyLife.
	DefaultLife strictyaml.Duration `yaml:"default_life"`
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text, json
}

// Organization is the first tenant, made with the first key.
type Organization struct {
	Name              string             `yaml:"name"`
	MaxGPUs           int                `yaml:"max_gpus"`
	SpeculationPerDay provisioners.Price `yaml:"speculation_per_day"`
}

// Timing tunes the loops. Zero values mean the defaults of ledger.Config, or of
// those that are named.
type Timing struct {
	Guard       strictyaml.Duration `yaml:"guard"`
	BootTimeout strictyaml.Duration `yaml:"boot_timeout"`
	ConfirmGone strictyaml.Duration `yaml:"confirm_gone"`
	StockOut    strictyaml.Duration `yaml:"stock_out"`
	CheckEvery  strictyaml.Duration `yaml:"check_every"`
	VerifyEvery strictyaml.Duration `yaml:"verify_every"`
	DeadMan     strictyaml.Duration `yaml:"dead_man"`
	SweepEvery  strictyaml.Duration `yaml:"sweep_every"`
	Observe     strictyaml.Duration `yaml:"observe_every"`
	Settle      strictyaml.Duration `yaml:"settle"`       // as worker.Config
	OrphanGrace strictyaml.Duration `yaml:"orphan_grace"` // as reconcile.Config
	OrphanApart strictyaml.Duration `yaml:"orphan_apart"` // as reconcile.Config
	Ahead       strictyaml.Duration `yaml:"schedules_ahead"`
}

// Provisioner configures one adapter. What stands under config is the adapter's.
type Provisioner struct {
	Kind   string    `yaml:"kind"`
	Config yaml.Node `yaml:"config"`
}

// Pool declares a pool, which is made at the start if its name is not there yet.
type Pool struct {
	Name         string              `yaml:"name"`
	Provisioner  string              `yaml:"provisioner"`
	Region       string              `yaml:"region"`
	InstanceType string              `yaml:"instance_type"`
	Model        string              `yaml:"model"`
	GPUsPerNode  int                 `yaml:"gpus_per_node"`
	SharesPerGPU int                 `yaml:"shares_per_gpu"` // bookings that may have one GPU at once; 0: one
	GPUMemoryMiB int                 `yaml:"gpu_memory_mib"`
	Price        provisioners.Price  `yaml:"price_per_node_hour"`
	Alternates   []PoolSource        `yaml:"alternates"`
	MinNodes     int                 `yaml:"min_nodes"`
	MaxNodes     int                 `yaml:"max_nodes"`
	WarmHold     strictyaml.Duration `yaml:"warm_hold"`
	IdleRelease  strictyaml.Duration `yaml:"idle_release"`
	MaxLease     strictyaml.Duration `yaml:"max_lease"`
	MaxCreates   int                 `yaml:"max_creates"`
	CreateWindow strictyaml.Duration `yaml:"create_window"`
	Use          string              `yaml:"use"` // reserved or observed; empty: as its provisioner is
	Holders      []Holder            `yaml:"holders"`
	Default      string              `yaml:"default_organization"`
	Access       string              `yaml:"access"`     // shell or devices; empty: shell
	Isolation    string              `yaml:"isolation"`  // devices, user or environment; empty: user
	MinDriver    string              `yaml:"min_driver"` // the oldest that nodes may have; empty: any
	Labels       map[string]string   `yaml:"labels"`
	Taints       []string            `yaml:"taints"`
	IdleWarn     strictyaml.Duration `yaml:"idle_warn_after"`
	IdleReclaim  strictyaml.Duration `yaml:"idle_reclaim_after"`
}

// PoolSource is another place where a declared pool's machines can be had. What
// it leaves out is taken from the provisioner's offer.
type PoolSource struct {
	Provisioner  string             `yaml:"provisioner"`
	Region       string             `yaml:"region"`
	InstanceType string             `yaml:"instance_type"`
	Price        provisioners.Price `yaml:"price_per_node_hour"`
}

// defaultConfig is the configuration of an embedded run without a file.
func defaultConfig() Config {
	return Config{
		Listen: "127.0.0.1:8787", DataDir: defaultDataDir(), Deployment: "forewarm", AwaitDaemons: true,
		Server: Server{MaxConnections: 8192, MaxPerAddress: 1024, MaxStreamsPerKey: 64,
			MaxStreamsPerOrganization: 512, Compat: true},
		Log:          Log{Level: "info", Format: "text"},
		Organization: Organization{Name: "default", MaxGPUs: 64, SpeculationPerDay: provisioners.Price(50 * money.USD)},
	}
}

func defaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "forewarm")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "forewarm")
	}
	return ".forewarm"
}

// loadConfig reads the file at path, if one is named, and lays the environment over it.
func loadConfig(path string) (Config, error) {
	cfg := defaultConfig()
	if path != "" {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return cfg, &strictyaml.Error{Path: path, Message: "does not exist",
				Fix: "name an existing file with --config, or leave it out to run with the defaults"}
		}
		if err != nil {
			return cfg, fmt.Errorf("reading configuration: %w", err)
		}
		if err := strictyaml.Decode(path, data, &cfg); err != nil {
			return cfg, err
		}
		cfg.file.path, cfg.file.data = path, data
	}
	cfg.overlayEnvironment()
	return cfg, cfg.checkValues()
}

// valueError is the error of a value that has the right type and still cannot work: with the variable or flag that set
// it, or its line in a file.
func (c Config) valueError(at, message, fix string) error {
	if setBy, ok := c.origins[at]; ok {
		return &strictyaml.Error{Path: setBy, Message: message, Fix: fix}
	}
	if c.file.path == "" {
		return &strictyaml.Error{Path: at, Message: message, Fix: fix}
	}
	return strictyaml.Wrong(c.file.path, c.file.data, at, message, fix)
}

// checkValues finds what can be seen to be wrong without asking anybody.
func (c Config) checkValues() error {
	if _, err := obs.ParseConfig(c.Log.Level, c.Log.Format); err != nil {
		return c.valueError("log", err.Error(), "use level debug, info, warn or error, and format text or json")
	}
	if err := provisioners.CheckName(c.Deployment); err != nil {
		return c.valueError("deployment", err.Error(),
			"write a name that no other installation has, such as forewarm-berlin")
	}
	if c.Organization.Name == "" || c.Organization.MaxGPUs < 0 {
		return c.valueError("organization", "needs a name and a max_gpus of 0 or more",
			"name your team, and how many GPUs it may hold")
	}
	if _, err := c.newEdge(); err != nil {
		return err
	}
	if err := c.checkURLs(); err != nil {
		return err
	}
	if err := errors.Join(c.checkScheduling(), c.checkCycleRecords()); err != nil {
		return err
	}
	names := map[string]bool{}
	for i, p := range c.Provisioners {
		if p.Kind == "" {
			return c.valueError(fmt.Sprintf("provisioners.%d", i), "lacks kind", "write kind: sim or kind: local")
		}
	}
	for i, p := range c.Pools {
		at := fmt.Sprintf("pools.%d", i)
		if names[p.Name] {
			return c.valueError(at+".name", "is the name of another pool", "give each pool its own name")
		}
		names[p.Name] = true
		if p.Provisioner == "" {
			return c.valueError(at, "lacks provisioner", "name one of the provisioners above")
		}
	}
	return nil
}

// checkURLs looks at the forms of URLs. What is wrong with one is told without
// it: it may hold a password.
func (c Config) checkURLs() error {
	url := c.Database.Reveal()
	own := strings.HasPrefix(url, "sqlite://")
	_, options, _ := strings.Cut(url, "?")
	switch {
	case own && strings.Contains(options, "="): // sqlledger would refuse it, but cannot name the line
		return c.valueError("database", "has options after a ?, and a file of SQLite takes none",
			"write sqlite:///path alone")
	case url != "" && !own:
		parsed, err := neturl.Parse(url)
		if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
			return c.valueError("database", "is not a URL of a database",
				"write sqlite:///path or postgres://user:password@host/name")
		}
	}
	if c.Redis.IsZero() {
		return nil
	}
	queue := asynqueue.Config{URL: c.Redis, Namespace: c.Deployment}.WithDefaults()
	if err := queue.Validate(); err != nil {
		return c.valueError("redis", "is not a URL of a Redis: "+err.Error(),
			"write redis://user:password@host:6379/0, or rediss:// for TLS")
	}
	return nil
}

// checkAddresses checks the addresses: plain HTTP leaves this machine only when asked to.
func (c Config) checkAddresses() error {
	if c.Server.MetricsListen != "" {
		if err := c.checkAddress("server.metrics_listen", c.Server.MetricsListen); err != nil {
			return err
		}
	}
	if err := c.checkPeers(); err != nil {
		return err
	}
	if err := c.checkAddress("listen", c.Listen); err != nil || c.MetricsListen == "" {
		return err
	}
	return c.checkAddress("metrics_listen", c.MetricsListen)
}

func (c Config) checkAddress(key, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return c.valueError(key, fmt.Sprintf("%q is not host:port", address), "write an address such as 127.0.0.1:8787")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return c.valueError(key, fmt.Sprintf("%q is no port", port),
			"write a number from 0 to 65535; with 0 the system chooses")
	}
	ip := net.ParseIP(host)
	if c.OpenBind || host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return nil
	}
	return c.valueError(key, address+" would serve plain HTTP beyond this machine",
		"put a TLS proxy in front of 127.0.0.1, or set open_bind: true")
}

// databaseURL is the URL of the ledger.
func (c Config) databaseURL() string {
	if !c.Database.IsZero() {
		return c.Database.Reveal()
	}
	return "sqlite://" + filepath.Join(c.DataDir, "forewarm.db")
}

func (c Config) isEmbedded() bool { return c.Redis.IsZero() }

func (c Config) quotaLimits() quota.Limits {
	return quota.Limits{GPUs: c.Organization.MaxGPUs,
		SpeculationPerDay: money.MicroUSD(c.Organization.SpeculationPerDay)}
}

func (c Config) ledgerConfig() ledger.Config {
	t := c.Timing
	return ledger.Config{
		Policy:      plan.Policy{Guard: t.Guard.Std(), BootTimeout: t.BootTimeout.Std()},
		ConfirmGone: t.ConfirmGone.Std(), StockOut: t.StockOut.Std(), CheckEvery: t.CheckEvery.Std(),
		VerifyEvery: t.VerifyEvery.Std(),
		DeadMan:     t.DeadMan.Std(), SweepEvery: t.SweepEvery.Std(), ObserveEvery: t.Observe.Std(),
		Ahead:           t.Ahead.Std(),
		TenantsSeeNodes: c.TenantsSeeNodes,
		AwaitDaemons:    c.AwaitDaemons,
		Scheduling:      ledger.NewLiveScheduling(c.Scheduling.config()),
	}
}

// watermarkPath is the file by which a restored database is noticed.
func (c Config) watermarkPath() string {
	return filepath.Join(c.DataDir, "journal-"+c.Deployment+".mark")
}

func (c Config) workerConfig() worker.Config {
	t := c.Timing
	return worker.Config{
		Deployment: c.Deployment, Watermark: c.watermarkPath(),
		Heartbeat: 3 * time.Second, ProviderDelay: t.Settle.Std(),
		Sweep: reconcile.Config{Grace: t.OrphanGrace.Std(), OrphanedFor: t.OrphanApart.Std()},
	}
}

// Timers of a pool that declares none.
const (
	defaultWarmHold    = 20 * time.Minute
	defaultIdleRelease = 10 * time.Minute
	defaultMaxLease    = 7 * 24 * time.Hour
)

func (p Pool) poolDefinition() capacity.Pool {
	or := func(d strictyaml.Duration, otherwise time.Duration) time.Duration {
		if d == 0 {
			return otherwise
		}
		return d.Std()
	}
	return capacity.Pool{
		Name: p.Name, Provisioner: p.Provisioner, Region: p.Region, Type: p.InstanceType, Model: p.Model,
		PerNode: p.GPUsPerNode, SharesPerGPU: p.SharesPerGPU, MemoryMiB: p.GPUMemoryMiB, Price: money.MicroUSD(p.Price),
		MinNodes: p.MinNodes, MaxNodes: p.MaxNodes, MaxCreates: p.MaxCreates, CreateWindow: p.CreateWindow.Std(),
		Timers: capacity.Timers{WarmHold: or(p.WarmHold, defaultWarmHold),
			IdleRelease: or(p.IdleRelease, defaultIdleRelease), MaxLease: or(p.MaxLease, defaultMaxLease),
			IdleWarn: p.IdleWarn.Std(), IdleReclaim: p.IdleReclaim.Std()},
		Observed: p.Use == useObserved, Holders: p.decodeHolders(),
		DevicesOnly: p.Access == accessDevices, Isolation: capacity.Isolation(p.Isolation),
		Labels: p.Labels, Taints: p.Taints, MinDriver: capacity.Driver(p.MinDriver),
	}
}

// maskedText is the configuration as it may be shown.
func (c Config) maskedText() string {
	redis := "in-process queue"
	if !c.isEmbedded() {
		redis = obs.ScrubURL(c.Redis.Reveal())
	}
	return strings.Join([]string{obs.ScrubURL(c.databaseURL()), redis}, " · ")
}
