package local

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/local/discover"
)

// Type is the one machine type that this provisioner offers.
const Type = "local"

// Config describes this machine.
type Config struct {
	Name   string             `yaml:"name"`
	Region string             `yaml:"region"`         // default "local"
	Price  provisioners.Price `yaml:"price_per_hour"` // of the whole machine; default 0
	// Model replaces the GPUs' own name in the offer, so that it can be the name
	// that pools use. Empty keeps the driver's name.
	Model string `yaml:"model"`
	// Simulate makes this many simulated GPUs instead of looking for real ones.
	Simulate           int `yaml:"simulate"`
	SimulatedMemoryMiB int `yaml:"simulated_memory_mib"` // of one GPU; default 81920
	// StateFile remembers what the machine is used for across restarts. Empty
	// means memory only.
	StateFile string `yaml:"state_file"`
	// HostID tells this machine from others. Default: the operating system's
	// machine id, else the host name.
	HostID string `yaml:"host_id"`
	// Daemon says whether forewarm up runs the node's daemon beside itself: auto, where it
	// finds the program, or none. Default: auto.
	Daemon string `yaml:"daemon"`
	// SharedUser lets that daemon run holders' commands as the user of this process, where it
	// can give them no user of their own. They can then do whatever this process can.
	SharedUser bool `yaml:"shared_user"`
	// HoldDir is where that daemon makes the folders of holders. Others must be able to pass
	// through it. Empty: where the program puts it.
	HoldDir string `yaml:"hold_dir"`
	// Source replaces the search for GPUs; nil means this machine's own, or
	// simulated ones as Simulate says.
	Source discover.Source `yaml:"-"`
}

const mostSimulated = 1024

// Whether the node's daemon is run beside this process.
const (
	DaemonAuto = "auto"
	DaemonNone = "none"
)

// WithDefaults returns the config with every unset field set; HostID is read
// from the machine.
func (c Config) WithDefaults() Config {
	if c.Name == "" {
		c.Name = "local"
	}
	if c.Region == "" {
		c.Region = "local"
	}
	if c.SimulatedMemoryMiB == 0 {
		c.SimulatedMemoryMiB = 81_920
	}
	if c.HostID == "" {
		c.HostID = hostID()
	}
	c.Daemon = cmp.Or(c.Daemon, DaemonAuto)
	if c.Source == nil {
		c.Source = c.deviceSource()
	}
	return c
}

// Validate returns every mistake in the config, each with its field.
func (c Config) Validate() error {
	mistakes := []error{provisioners.CheckName(c.Name)}
	if c.Simulate < 0 || c.Simulate > mostSimulated {
		mistakes = append(mistakes, fmt.Errorf("simulate: %d is not between 0 and %d", c.Simulate, mostSimulated))
	}
	if c.SimulatedMemoryMiB < 0 {
		mistakes = append(mistakes, fmt.Errorf("simulated_memory_mib: %d is negative", c.SimulatedMemoryMiB))
	}
	if c.Price < 0 {
		mistakes = append(mistakes, fmt.Errorf("price_per_hour: %d is negative", c.Price))
	}
	if c.Daemon != DaemonAuto && c.Daemon != DaemonNone {
		mistakes = append(mistakes, fmt.Errorf("daemon: %q is not %s or %s", c.Daemon, DaemonAuto, DaemonNone))
	}
	if c.HostID == "" {
		mistakes = append(mistakes, errors.New("host_id: is empty and this machine has no id of its own"))
	}
	return errors.Join(mistakes...)
}

func (c Config) deviceSource() discover.Source {
	if c.Simulate == 0 {
		return discover.System()
	}
	model := cmp.Or(c.Model, "GPU")
	return discover.Simulated{Host: c.HostID, Count: c.Simulate, Model: "SIM " + model, MemoryMiB: c.SimulatedMemoryMiB}
}

// hostID is empty when the machine does not know itself, which Validate
// reports.
func hostID() string {
	if id, err := os.ReadFile("/etc/machine-id"); err == nil && len(strings.TrimSpace(string(id))) > 0 {
		return strings.TrimSpace(string(id))
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
