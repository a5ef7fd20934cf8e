package ssh

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Config describes machines that stand and are reached over SSH.
type Config struct {
	Name  string `yaml:"name"` // default "ssh"
	Hosts []Host `yaml:"hosts"`
	User  string `yaml:"user"` // of hosts that name none
	// IdentityFile is the private key, which nobody else may read. Its passphrase
	// comes from the variable that PassphraseEnv names.
	IdentityFile  string `yaml:"identity_file"`
	PassphraseEnv string `yaml:"passphrase_env"`
	// KnownHosts is a file as ssh-keyscan writes it. Required, but for hosts that
	// carry their key: a key is never trusted because it was the first one seen.
	KnownHosts string `yaml:"known_hosts"`
	// StateDir is where claims are kept on each machine; relative to the user's
	// home. Default .forewarm. Whoever shares machines must share it.
	StateDir string `yaml:"state_dir"`
	// Probe lists GPUs as CSV: uuid, index, name, memory in MiB, uncorrected ECC
	// errors. Default: nvidia-smi.
	Probe        string        `yaml:"probe"`
	ProbeTimeout time.Duration `yaml:"probe_timeout"` // default 20 s, whole seconds
	Setup        Setup         `yaml:"setup"`
	// Wipe is run before a machine is free for the next tenant. Then, unless
	// KeepProcesses, what users left on the GPUs is ended.
	Wipe           []string      `yaml:"wipe"`
	KeepProcesses  bool          `yaml:"keep_processes"`
	ConnectTimeout time.Duration `yaml:"connect_timeout"` // default 10 s
	Timeout        time.Duration `yaml:"timeout"`         // of one call to one machine; default 1 min
	Boot           Boot          `yaml:"boot"`            // how long Setup takes
}

// Host is one machine.
type Host struct {
	Name    string `yaml:"name"`
	Address string `yaml:"address"` // host or host:port
	User    string `yaml:"user"`
	HostKey string `yaml:"host_key"` // as in a .pub file; replaces KnownHosts for this host
	Type    string `yaml:"type"`
	Region  string `yaml:"region"`
	Model   string `yaml:"model"` // what pools call its GPUs
	// GPUName is what the driver must call them; empty does not check.
	GPUName   string             `yaml:"gpu_name"`
	GPUs      int                `yaml:"gpus"`
	MemoryMiB int                `yaml:"memory_mib"` // of one GPU
	Price     provisioners.Price `yaml:"price_per_hour"`
	// OutOfService takes the machine out of everything: it is not asked, and what
	// was claimed there counts as gone.
	OutOfService bool `yaml:"out_of_service"`
}

// Setup makes a claimed machine ready. It runs detached on the machine.
type Setup struct {
	Copy     []File   `yaml:"copy"`
	Commands []string `yaml:"commands"`
	Env      []string `yaml:"env"` // names of variables that the commands get
	// Daemon says that the commands start the node's daemon: they are then given what it needs
	// to join.
	Daemon bool `yaml:"daemon"`
}

// File is copied from this machine before the commands run.
type File struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`   // relative to the user's home, or absolute
	Mode string `yaml:"mode"` // octal; default 0755
}

// Boot is the prior for the time from Create to a machine that can be used.
type Boot struct {
	P50 time.Duration `yaml:"p50"`
	P95 time.Duration `yaml:"p95"`
}

const usualProbe = "nvidia-smi --query-gpu=uuid,index,name,memory.total,ecc.errors.uncorrected.volatile.total " +
	"--format=csv,noheader,nounits"

// WithDefaults returns the config with every unset field set.
func (c Config) WithDefaults() Config {
	c.Name = valueOr(c.Name, "ssh")
	c.StateDir = valueOr(c.StateDir, ".forewarm")
	c.Probe = valueOr(c.Probe, usualProbe)
	c.ProbeTimeout = valueOr(c.ProbeTimeout, 20*time.Second)
	c.ConnectTimeout = valueOr(c.ConnectTimeout, 10*time.Second)
	c.Timeout = valueOr(c.Timeout, time.Minute)
	c.Boot.P95 = valueOr(c.Boot.P95, c.Boot.P50)
	c.Hosts = append([]Host(nil), c.Hosts...)
	for i := range c.Hosts {
		c.Hosts[i].User = valueOr(c.Hosts[i].User, c.User)
	}
	c.Setup.Copy = append([]File(nil), c.Setup.Copy...)
	for i := range c.Setup.Copy {
		c.Setup.Copy[i].Mode = valueOr(c.Setup.Copy[i].Mode, "0755")
	}
	return c
}

func valueOr[T comparable](value, otherwise T) T {
	var unset T
	if value == unset {
		return otherwise
	}
	return value
}

var (
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	plainPath  = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./-]*$`)
	octalMode  = regexp.MustCompile(`^0?[0-7]{3}$`)
	maxTimeout = time.Hour
)

// Validate returns every mistake in the config, each with its field. It looks at
// no file.
func (c Config) Validate() error {
	mistakes := []error{provisioners.CheckName(c.Name), c.checkHosts(), c.Setup.validateFields()}
	mistake := func(wrong bool, format string, args ...any) {
		if wrong {
			mistakes = append(mistakes, fmt.Errorf(format, args...))
		}
	}
	mistake(!filepath.IsAbs(c.IdentityFile), "identity_file: %q is not an absolute path", c.IdentityFile)
	mistake(c.KnownHosts != "" && !filepath.IsAbs(c.KnownHosts), "known_hosts: %q is not an absolute path",
		c.KnownHosts)
	mistake(c.PassphraseEnv != "" && !variable.MatchString(c.PassphraseEnv),
		"passphrase_env: %q is not the name of a variable", c.PassphraseEnv)
	mistake(!plainPath.MatchString(c.StateDir), "state_dir: %q has more than letters, digits and _./-", c.StateDir)
	mistake(c.ProbeTimeout < time.Second || c.ProbeTimeout%time.Second != 0,
		"probe_timeout: %v is not in whole seconds", c.ProbeTimeout)
	mistake(c.ConnectTimeout <= 0 || c.ConnectTimeout > maxTimeout, "connect_timeout: %v is not between 0 and %v",
		c.ConnectTimeout, maxTimeout)
	mistake(c.Timeout <= c.ProbeTimeout+patience || c.Timeout > maxTimeout,
		"timeout: %v is not between probe_timeout + %v and %v", c.Timeout, patience, maxTimeout)
	mistake(c.Boot.P50 < 0 || c.Boot.P95 < c.Boot.P50, "boot: want 0 <= p50 <= p95, have p50 %v, p95 %v", c.Boot.P50,
		c.Boot.P95)
	return errors.Join(mistakes...)
}

// patience is how long after its time-out a probe is known to hang.
const patience = 5 * time.Second

func (s Setup) validateFields() error {
	var mistakes []error
	for i, file := range s.Copy {
		if !filepath.IsAbs(file.From) || file.To == "" || strings.HasSuffix(file.To, "/") {
			mistakes = append(mistakes,
				fmt.Errorf("setup.copy[%d]: want from as an absolute path and to as a file, have %q and %q", i,
					file.From, file.To))
		}
		if !octalMode.MatchString(file.Mode) {
			mistakes = append(mistakes, fmt.Errorf("setup.copy[%d]: mode: %q is not like 0755", i, file.Mode))
		}
	}
	for i, name := range s.Env {
		if !variable.MatchString(name) {
			mistakes = append(mistakes, fmt.Errorf("setup.env[%d]: %q is not the name of a variable", i, name))
		}
	}
	return errors.Join(mistakes...)
}
