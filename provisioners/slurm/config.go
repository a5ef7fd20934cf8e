package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Config describes one Slurm cluster as one user of it sees it.
type Config struct {
	Name   string  `yaml:"name"`
	Region string  `yaml:"region"` // default "slurm"
	Offers []Offer `yaml:"offers"`
	// Use is UseReserved, the default, or UseObserved.
	Use string `yaml:"use"`
	// Warm is how an observer powers cold nodes up: WarmAuto, the default, or
	// WarmHeartbeat.
	Warm string `yaml:"warm"`

	// Account, QOS and Reservation are those of offers that name none.
	Account     string `yaml:"account"`
	QOS         string `yaml:"qos"`
	Reservation string `yaml:"reservation"`
	// ExtraArgs are further options of sbatch, each as --name=value. Only those
	// that cannot change what a placeholder is are allowed.
	ExtraArgs []string `yaml:"extra_args"`
	// Output is the file that a placeholder writes to, in sbatch's own pattern.
	// Default /dev/null.
	Output string `yaml:"output"`

	// CommandPrefix stands before every Slurm command: [ssh, login-node] for a
	// control plane outside of the cluster. With ssh, or RemoteShell, arguments
	// are quoted for the shell at the other end.
	CommandPrefix []string `yaml:"command_prefix"`
	RemoteShell   bool     `yaml:"remote_shell"`
	// BinDir is the folder of Slurm's commands; empty means that PATH has them.
	BinDir string `yaml:"bin_dir"`
	// SlurmConf is SLURM_CONF for them; empty means Slurm's default.
	SlurmConf string `yaml:"slurm_conf"`
	// Timeout bounds one command. Default 30 s.
	Timeout time.Duration `yaml:"timeout"`

	// Probe is run inside the allocation and prints one GPU a line: index, UUID,
	// memory in MiB, uncorrected ECC errors, name. Default: nvidia-smi.
	Probe []string `yaml:"probe"`
	// ProbeTimeout is how long a node may take until its probe passes. After that
	// the placeholder gives up and ends. Default 2 min.
	ProbeTimeout time.Duration `yaml:"probe_timeout"`
	// AllowUnprobed lets nodes without the probe's program serve: their GPUs get
	// made-up UUIDs that say so.
	AllowUnprobed bool `yaml:"allow_unprobed"`

	// PendingTimeout is how long a placeholder may wait for its node in the queue.
	// Default 10 min.
	PendingTimeout time.Duration `yaml:"pending_timeout"`
	// QueueWhenFull submits also when no node seems free, for partitions that may
	// preempt other jobs.
	QueueWhenFull bool `yaml:"queue_when_full"`
	// CheckEvery is how often an expired placeholder looks whether it may go.
	// Default 30 s.
	CheckEvery time.Duration `yaml:"check_every"`
	// EndNotice is how long before its time limit a machine says so. Default 15 min.
	EndNotice time.Duration `yaml:"end_notice"`
	// Accounting says that sacct works here, which then remembers ended machines.
	Accounting bool `yaml:"accounting"`
	// Daemon has placeholders run the node's daemon.
	Daemon Daemon `yaml:"daemon"`
	// StateFile remembers the tokens of machines across restarts. Empty means
	// memory only.
	StateFile string `yaml:"state_file"`
}

// Daemon is the node's daemon that a placeholder runs, as its user and in its job.
type Daemon struct {
	// Program is the path of forewarm-node on the nodes. Empty: none is run.
	Program string `yaml:"program"`
	// SharedUser lets the work of holders run as the user of the placeholders, which is the
	// only one that there is in a job. Without it the daemon reports, and takes no sessions.
	SharedUser bool `yaml:"shared_user"`
	// Args are further arguments of forewarm-node run.
	Args []string `yaml:"args"`
}

// The values of Config.Use: what a machine is.
const (
	UseReserved = "reserved" // a placeholder job, which holds GPUs: see Cluster
	UseObserved = "observed" // a node that is kept warm for the cluster's own users: see Observed
)

// The ways to power a node up.
const (
	WarmAuto      = "auto"      // with POWER_UP where Slurm accepts it from our user, else with a heartbeat
	WarmHeartbeat = "heartbeat" // with a heartbeat job always, as any user may
	WarmPowerUp   = "power_up"  // see Means
)

var nvidiaSMI = []string{
	"nvidia-smi", "--query-gpu=index,uuid,memory.total,ecc.errors.uncorrected.volatile.total,name",
	"--format=csv,noheader,nounits",
}

// WithDefaults returns the config with every unset field set.
func (c Config) WithDefaults() Config {
	c.Name = cmp.Or(c.Name, "slurm")
	c.Region = cmp.Or(c.Region, "slurm")
	c.Use, c.Warm = cmp.Or(c.Use, UseReserved), cmp.Or(c.Warm, WarmAuto)
	c.Output = cmp.Or(c.Output, "/dev/null")
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, 2*time.Minute)
	c.PendingTimeout = cmp.Or(c.PendingTimeout, 10*time.Minute)
	c.CheckEvery = cmp.Or(c.CheckEvery, 30*time.Second)
	c.EndNotice = cmp.Or(c.EndNotice, 15*time.Minute)
	if len(c.Probe) == 0 {
		c.Probe = nvidiaSMI
	}
	c.Offers = slices.Clone(c.Offers)
	for i := range c.Offers {
		o := &c.Offers[i]
		o.Gres = cmp.Or(o.Gres, "gpu")
		o.Account, o.QOS = cmp.Or(o.Account, c.Account), cmp.Or(o.QOS, c.QOS)
		o.Reservation = cmp.Or(o.Reservation, c.Reservation)
		o.Boot.P95 = max(o.Boot.P50, o.Boot.P95)
	}
	return c
}

// Validate returns every mistake in the config, each with its field.
func (c Config) Validate() error {
	mistakes := []error{provisioners.CheckName(c.Name)}
	for name, value := range map[string]time.Duration{
		"timeout": c.Timeout, "probe_timeout": c.ProbeTimeout, "pending_timeout": c.PendingTimeout,
		"check_every": c.CheckEvery,
	} {
		if value < time.Second {
			mistakes = append(mistakes, fmt.Errorf("%s: %v is less than a second", name, value))
		}
	}
	if c.EndNotice < 0 {
		mistakes = append(mistakes, fmt.Errorf("end_notice: %v is negative", c.EndNotice))
	}
	for _, folder := range []struct{ name, path string }{{"bin_dir", c.BinDir}, {"slurm_conf", c.SlurmConf},
		{"output", c.Output}, {"daemon.program", c.Daemon.Program}} {
		if folder.path != "" && !path.IsAbs(folder.path) {
			mistakes = append(mistakes, fmt.Errorf("%s: %q is not an absolute path", folder.name, folder.path))
		}
	}
	for i, arg := range c.ExtraArgs {
		if !extraArg.MatchString(arg) {
			mistakes = append(mistakes, fmt.Errorf("extra_args[%d]: %q is not one of %s, as --name=value", i, arg,
				extraNames))
		}
	}
	mistakes = append(mistakes, c.checkUse()...)
	return errors.Join(append(mistakes, c.checkOffers()...)...)
}

const extraNames = "constraint, exclude, licenses, nice, nodelist, prefer, priority, switches, wckey"

var extraArg = regexp.MustCompile(`^--(constraint|exclude|licenses|nice|nodelist|prefer|priority|switches|wckey)` +
	`=[^\x00-\x20\x7f]+$`)

func (c Config) checkOffers() []error {
	var mistakes []error
	if len(c.Offers) == 0 {
		mistakes = append(mistakes, errors.New("offers: at least one is needed"))
	}
	seen := map[string]bool{}
	for i, o := range c.Offers {
		for _, mistake := range o.validateFields() {
			mistakes = append(mistakes, fmt.Errorf("offers[%d].%w", i, mistake))
		}
		if seen[o.Type] {
			mistakes = append(mistakes, fmt.Errorf("offers[%d].type: %q is offered twice", i, o.Type))
		}
		seen[o.Type] = true
	}
	return mistakes
}
