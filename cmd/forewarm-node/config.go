package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/core/health"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/node/burnin"
	"github.com/forewarm/forewarm/node/container"
	"github.com/forewarm/forewarm/node/hold"
)

// config is the file forewarm-node.yaml. Environment variables, then flags, go before it.
// Every key is used: one that is not known here is refused.
type config struct {
	URL       string `yaml:"url"`
	Node      string `yaml:"node"`
	TokenFile string `yaml:"token_file"` // - for standard input, fd:N for an inherited descriptor
	StateDir  string `yaml:"state_dir"`
	Simulate  int    `yaml:"simulate"`
	// SimulateSeed is what the UUIDs of simulated GPUs are made from. Empty: the node's id.
	SimulateSeed string `yaml:"simulate_seed"`
	Source       string `yaml:"source"`
	KernelLog    string `yaml:"kernel_log"`
	// Telemetry is looked at and reported as often; 0: as the control plane says.
	LookEvery   time.Duration `yaml:"look_every"`
	ReportEvery time.Duration `yaml:"report_every"`
	// PCIeThroughput measures it by NVML, for 40 ms of each GPU's look.
	PCIeThroughput bool `yaml:"pcie_throughput"`
	// DCGMExporter is the URL of a DCGM exporter's metrics, which fills in what the source does not tell.
	DCGMExporter string `yaml:"dcgm_exporter"`
	DCGMAnywhere bool   `yaml:"dcgm_anywhere"` // also at public addresses
	PlainHTTP    bool   `yaml:"plain_http"`    // also to other machines
	Sessions     bool   `yaml:"sessions"`
	HoldDir      string `yaml:"hold_dir"` // empty: beside state_dir
	// SharedUser takes sessions where they can have no user of their own, but the daemon's.
	SharedUser bool `yaml:"shared_user"`
	// What the work of a hold may have, where the kernel can bound it: see hold.Bounds.
	HoldMemory    string `yaml:"hold_memory"`
	HoldCPUs      string `yaml:"hold_cpus"`
	MemoryReserve string `yaml:"memory_reserve"`
	// What runs jobs with an image, and what of the node they may have: see container.Config.
	ContainerRuntime string      `yaml:"container_runtime"`
	ContainerMounts  string      `yaml:"container_mounts"`
	XIDs             []xidConfig `yaml:"xids"`
	// What is done to the memory of GPUs before they are used, and after each holder: see burnin.Mode.
	BurnIn    string `yaml:"burn_in"`
	Overwrite string `yaml:"overwrite"`
	Clocks    string `yaml:"clocks"`   // after each holder: reset or keep
	Settings  string `yaml:"settings"` // after each holder: restore or keep
	// Metadata is whether the work of holders reaches the cloud's services that tell a machine about itself.
	Metadata string `yaml:"metadata"`
}

// xidConfig is what an XID means here, instead of what the built-in table says.
type xidConfig struct {
	Code     int    `yaml:"code"`
	Decision string `yaml:"decision"`
}

// The sources of figures.
const (
	sourceAuto = "auto" // NVML, and nvidia-smi where there is none
	sourceNVML = "nvml"
	sourceSMI  = "nvidia-smi"
)

// What becomes of clocks, and of other settings, when a holder leaves.
const (
	resetClocks     = "reset"
	keepClocks      = "keep"
	restoreSettings = "restore"
	keepSettings    = "keep"
)

// Whether the work of holders reaches the cloud's metadata.
const (
	blockMetadata = "block"
	allowMetadata = "allow"
)

// mostSimulated is how many GPUs a machine may have.
const mostSimulated = 64

func defaultConfig() config {
	return config{StateDir: "/var/lib/forewarm-node", Sessions: true, Source: sourceAuto, KernelLog: "/dev/kmsg",
		HoldMemory: hold.ByShare, HoldCPUs: hold.ByWeight, ContainerRuntime: container.Usual,
		BurnIn: string(burnin.Auto), Overwrite: string(burnin.Auto), Clocks: resetClocks,
		Settings: restoreSettings, Metadata: blockMetadata}
}

// settings are the flags of both commands; each has a variable FOREWARM_NODE_….
func (c *config) addFlags(f *pflag.FlagSet) {
	f.IntVar(&c.Simulate, "simulate", c.Simulate, "report this many simulated GPUs, which say SIM, instead of real ones")
	f.StringVar(&c.SimulateSeed, "simulate-seed", c.SimulateSeed,
		"what the UUIDs of simulated GPUs are made from; empty: the node's id")
	f.StringVar(&c.Source, "source", c.Source, "where figures come from: auto, nvml or nvidia-smi")
	f.BoolVar(&c.PCIeThroughput, "pcie-throughput", c.PCIeThroughput, "measure what PCIe carries by NVML, which takes 40 "+
		"ms of each look for each GPU")
	f.StringVar(&c.DCGMExporter, "dcgm-exporter", c.DCGMExporter, "a DCGM exporter whose figures fill in what the source "+
		"does not tell, as in http://127.0.0.1:9400/metrics")
	f.BoolVar(&c.DCGMAnywhere, "dcgm-anywhere", c.DCGMAnywhere,
		"the DCGM exporter may be elsewhere than on this machine or in a private network")
	f.StringVar(&c.KernelLog, "kernel-log", c.KernelLog, "where the driver's errors (XIDs) are read; empty: from NVML")
}

// addRunFlags are those of run alone. The token itself is never an argument: others can
// see those.
func (c *config) addRunFlags(f *pflag.FlagSet) {
	f.StringVar(&c.URL, "url", c.URL, "the control plane, as in https://forewarm.example.com")
	f.StringVar(&c.Node, "node", c.Node, "the id of this node, as forewarm nodes list shows it")
	f.DurationVar(&c.LookEvery, "look-every", c.LookEvery, "between two looks at the GPUs, 1s to 30s (default as the "+
		"control plane says: 10s)")
	f.DurationVar(&c.ReportEvery, "report-every", c.ReportEvery, "at least between two reports of which nothing is "+
		"urgent, 5s to 30s (default as the control plane says: 10s)")
	f.StringVar(&c.TokenFile, "token-file", c.TokenFile,
		"the file with the join token; - for standard input, fd:N for an inherited descriptor")
	f.BoolVar(&c.PlainHTTP, "plain-http", c.PlainHTTP,
		"send token and key to another machine without encryption, in a network that nobody else is in")
	f.BoolVar(&c.Sessions, "sessions", c.Sessions,
		"let holders of allocations run commands and jobs, and reach ports here")
	f.BoolVar(&c.SharedUser, "shared-user", c.SharedUser, "let holders' work run as the daemon's own user where it can "+
		"have no other: it can then read the node's key")
	f.StringVar(&c.HoldDir, "hold-dir", c.HoldDir, "where holders' folders are made; empty: state-dir with -holds added")
	f.StringVar(&c.HoldMemory, "hold-memory", c.HoldMemory, "memory of an allocation's work: share (as much as its "+
		"GPUs are of the node's), none (no bound), or a size for each GPU, such as 100GiB")
	f.StringVar(&c.HoldCPUs, "hold-cpus", c.HoldCPUs, "processors of an allocation's work: weight (its share while "+
		"others want them), share (never more), none, or a number for each GPU")
	f.StringVar(&c.MemoryReserve, "memory-reserve", c.MemoryReserve, "memory of the machine that no allocation's work "+
		"gets (default a twentieth, between 512MiB and 16GiB)")
	f.StringVar(&c.ContainerRuntime, "container-runtime", c.ContainerRuntime, "what runs jobs with an image, the first "+
		"that is there: apptainer, podman, docker, with commas; or none")
	f.StringVar(&c.ContainerMounts, "container-mounts", c.ContainerMounts, "folders that jobs may have in their "+
		"containers, with commas, as in /data:ro,/scratch")
	f.StringVar(&c.BurnIn, "burn-in", c.BurnIn, "test the memory of GPUs before they are used: auto (where there is "+
		"CUDA), require (a GPU that cannot be tested is unhealthy), or none")
	f.StringVar(&c.Overwrite, "overwrite", c.Overwrite, "overwrite the memory of GPUs after each holder: auto (where "+
		"there is CUDA), require (a GPU where it cannot be is not clean), or none")
	f.StringVar(&c.Clocks, "clocks", c.Clocks, "clocks of GPUs after each holder: reset, or keep (as an administrator "+
		"set them)")
	f.StringVar(&c.Settings, "settings", c.Settings, "power limit and modes of GPUs after each holder: restore (as they "+
		"were before), or keep")
	f.StringVar(&c.Metadata, "metadata", c.Metadata, "the cloud's metadata of this machine, for holders' work: block, or "+
		"allow (it may then do what the machine's role may)")
	f.StringVar(&c.StateDir, "state-dir", c.StateDir, "where the node's key is kept; readable by its user alone")
}

// loadConfig reads the file, if one is named, and lays the environment over it, and the
// flags that were given.
func loadConfig(path string, getenv func(string) string, flags *pflag.FlagSet) (config, error) {
	c := defaultConfig()
	if path != "" {
		data, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			return c, fmt.Errorf("reading the configuration: %w", err)
		}
		if err := strictyaml.Decode(path, data, &c); err != nil {
			return c, err
		}
	}
	overlay := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.addFlags(overlay)
	c.addRunFlags(overlay)
	var err error
	overlay.VisitAll(func(f *pflag.Flag) {
		name := "FOREWARM_NODE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v := getenv(name); v != "" {
			if e := f.Value.Set(v); e != nil {
				err = errors.Join(err, &usageError{fmt.Errorf("%s: %w", name, e)})
			}
		}
		if given := flags.Lookup(f.Name); given != nil && given.Changed {
			_ = f.Value.Set(given.Value.String()) // it was a flag of the same kind
		}
	})
	return c, errors.Join(err, c.check())
}

func (c config) check() error {
	switch {
	case c.Simulate < 0 || c.Simulate > mostSimulated:
		return &usageError{fmt.Errorf("simulate: must be 0 to %d", mostSimulated)}
	case !slices.Contains([]string{sourceAuto, sourceNVML, sourceSMI}, c.Source):
		return &usageError{fmt.Errorf("source: %q: must be auto, nvml or nvidia-smi", c.Source)}
	case !slices.Contains(burnin.Modes, burnin.Mode(c.BurnIn)):
		return &usageError{fmt.Errorf("burn_in: %q: must be auto, require or none", c.BurnIn)}
	case !slices.Contains(burnin.Modes, burnin.Mode(c.Overwrite)):
		return &usageError{fmt.Errorf("overwrite: %q: must be auto, require or none", c.Overwrite)}
	case c.Clocks != resetClocks && c.Clocks != keepClocks:
		return &usageError{fmt.Errorf("clocks: %q: must be reset or keep", c.Clocks)}
	case c.Settings != restoreSettings && c.Settings != keepSettings:
		return &usageError{fmt.Errorf("settings: %q: must be restore or keep", c.Settings)}
	case c.Metadata != blockMetadata && c.Metadata != allowMetadata:
		return &usageError{fmt.Errorf("metadata: %q: must be block or allow", c.Metadata)}
	case !c.PlainHTTP && leavesUnencrypted(c.URL):
		return &usageError{fmt.Errorf("url: %s: the node's key would leave this machine unencrypted: use https://, "+
			"or set plain_http where nobody else is in the network", c.URL)}
	}
	if err := errors.Join(c.checkRates(), c.checkExporter(), c.policy().Check(), c.bounds().Check(),
		c.containers().Check()); err != nil {
		return &usageError{err}
	}
	return nil
}

func (c config) containers() container.Config {
	return container.Config{Runtimes: c.ContainerRuntime, Mounts: c.ContainerMounts}
}

func (c config) bounds() hold.Bounds {
	return hold.Bounds{Memory: c.HoldMemory, CPUs: c.HoldCPUs, Reserve: c.MemoryReserve}
}

// leavesUnencrypted reports whether requests to an address go to another machine in the clear.
func leavesUnencrypted(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback()
}

func (c config) policy() health.Policy {
	p := health.Policy{XIDs: map[int]health.Decision{}}
	for _, x := range c.XIDs {
		p.XIDs[x.Code] = health.Decision(x.Decision)
	}
	return p
}

// readToken reads the join token; empty if there is none to read.
func (c config) readToken(stdin io.Reader) (obs.Secret, error) {
	var from io.Reader
	number, isDescriptor := strings.CutPrefix(c.TokenFile, "fd:")
	switch {
	case c.TokenFile == "":
		return obs.Secret{}, nil
	case c.TokenFile == "-":
		from = stdin
	case isDescriptor:
		fd, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return obs.Secret{}, &usageError{fmt.Errorf("token_file: %q: want fd: and a number", c.TokenFile)}
		}
		file := os.NewFile(uintptr(fd), "token")
		if file == nil {
			return obs.Secret{}, &usageError{fmt.Errorf("token_file: descriptor %d is not open", fd)}
		}
		defer func() { _ = file.Close() }()
		from = file
	default:
		file, err := openPrivate(c.TokenFile)
		if errors.Is(err, os.ErrNotExist) {
			return obs.Secret{}, nil // it was used, and removed
		}
		if err != nil {
			return obs.Secret{}, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, 4096))
	if err != nil {
		return obs.Secret{}, fmt.Errorf("reading the join token: %w", err)
	}
	return obs.NewSecret(strings.TrimSpace(string(text))), nil
}

// openPrivate opens a file that its owner alone may read.
func openPrivate(path string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Clean(path), os.O_RDONLY|syscall.O_NONBLOCK, 0) // nobody may write to a FIFO
	if err != nil {
		return nil, fmt.Errorf("reading the join token: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &usageError{fmt.Errorf("token_file: %s is no regular file", path)}
	} else if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = &usageError{fmt.Errorf("token_file: others may read %s: chmod 600 %s", path, path)}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
