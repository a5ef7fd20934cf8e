//go:build clouds

package aws

import (
	"cmp"
	"time"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/bootscript"
)

// Config describes one region of one account.
type Config struct {
	Name   string `yaml:"name"`
	Region string `yaml:"region"`
	// Endpoint replaces EC2's own address: https, or http on this machine.
	Endpoint string `yaml:"endpoint"`
	// Profile and CredentialsFile choose whose credentials are used. Without
	// them it is the SDK's default chain: environment, shared files, web
	// identity, container, instance role. No secret is ever in this config.
	Profile         string  `yaml:"profile"`
	CredentialsFile string  `yaml:"credentials_file"`
	Offers          []Offer `yaml:"offers"`
	// PriceFile is a catalogue of instance types that offers need not repeat.
	PriceFile       string   `yaml:"price_file"`
	ImageID         string   `yaml:"image_id"`
	SecurityGroups  []string `yaml:"security_groups"`
	InstanceProfile string   `yaml:"instance_profile"` // a name or an ARN
	KeyName         string   `yaml:"key_name"`
	// RootVolumeGiB enlarges the image's root volume; 0 keeps its size.
	RootVolumeGiB int32 `yaml:"root_volume_gib"`
	// UserDataFile is a script or a cloud config that runs after our own.
	UserDataFile string `yaml:"user_data_file"`
	// Daemon is where machines get the daemon of their node from, which they start after
	// that: none (the default), download or image.
	Daemon  bootscript.Source `yaml:"daemon"`
	Address Address           `yaml:"address"`
	// LoginUser is whom holders log in as by ssh, as the image has it, such as ubuntu.
	// Empty leaves it to their own ssh.
	LoginUser string `yaml:"login_user"`
	Probe     Probe  `yaml:"probe"`
	// UnclaimedAfter is after how long a machine ends itself that was made and
	// never told its end, because its maker died in between. Default 1 h.
	UnclaimedAfter time.Duration `yaml:"unclaimed_after"`
	// CallTimeout bounds one call of the port, with all its repetitions.
	// Default 1 min.
	CallTimeout time.Duration `yaml:"call_timeout"`
	// RetryWait is the longest wait before a failed request is repeated, at most
	// twice. Default 5 s.
	RetryWait time.Duration `yaml:"retry_wait"`
}

// Offer is one way to get one instance type.
type Offer struct {
	Type         string `yaml:"type"` // what pools call it, unique here
	InstanceType string `yaml:"instance_type"`
	Zone         string `yaml:"zone"`
	Subnet       string `yaml:"subnet"`
	Market       Market `yaml:"market"`
	// ReservationID is that of a capacity reservation or a capacity block.
	ReservationID string `yaml:"reservation_id"`
	// From and Until bound the use. Of a capacity block they are the window that
	// is billed, of which the last 40 minutes cannot be used.
	From  time.Time `yaml:"from"`
	Until time.Time `yaml:"until"`
	// Model, GPUs, MemoryMiB (of one GPU) and Price may come from the catalogue.
	Model     string              `yaml:"model"`
	GPUs      int                 `yaml:"gpus"`
	MemoryMiB int                 `yaml:"memory_mib"`
	Price     *provisioners.Price `yaml:"price_per_hour"`
	// GPUName is what the driver calls the GPU. A machine with another one
	// reports that other name as its model, which no pool accepts. Empty accepts
	// any.
	GPUName string `yaml:"gpu_name"`
	// MaxSpotPrice is the most to pay on the spot market; none is the on-demand
	// price.
	MaxSpotPrice *provisioners.Price `yaml:"max_spot_price"`
	ImageID      string              `yaml:"image_id"` // instead of Config.ImageID
	Boot         Boot                `yaml:"boot"`
}

// Boot is the prior for the time to a proved machine. Default 5 and 12 minutes.
type Boot struct {
	P50 time.Duration `yaml:"p50"`
	P95 time.Duration `yaml:"p95"`
}

// Market is how a machine is paid.
type Market string

// The markets.
const (
	OnDemand            Market = "on_demand"
	Spot                Market = "spot"
	CapacityReservation Market = "capacity_reservation"
	CapacityBlock       Market = "capacity_block"
)

// Probe is how a machine proves its GPUs.
type Probe string

// The probes.
const (
	// ProbeConsole reads the report of the package guest from the console.
	ProbeConsole Probe = "console"
	// ProbeNone believes the offer: a machine that runs has the GPUs it should
	// have, under ids that are made up. Nothing is proved.
	ProbeNone Probe = "none"
)

// Address is which of its addresses a machine is reached at.
type Address string

// The addresses.
const (
	Private Address = "private"
	Public  Address = "public" // where the subnet gives one
)

// WithDefaults returns the config with every unset field set.
func (c Config) WithDefaults() Config {
	c.Name = cmp.Or(c.Name, "aws")
	c.Daemon = cmp.Or(c.Daemon, bootscript.None)
	c.Address = cmp.Or(c.Address, Private)
	c.Probe = cmp.Or(c.Probe, ProbeConsole)
	c.UnclaimedAfter = cmp.Or(c.UnclaimedAfter, time.Hour)
	c.CallTimeout = cmp.Or(c.CallTimeout, time.Minute)
	c.RetryWait = cmp.Or(c.RetryWait, 5*time.Second)
	offers := make([]Offer, len(c.Offers))
	for i, o := range c.Offers {
		o.Market = cmp.Or(o.Market, OnDemand)
		o.ImageID = cmp.Or(o.ImageID, c.ImageID)
		if o.Boot == (Boot{}) {
			o.Boot = Boot{P50: 5 * time.Minute, P95: 12 * time.Minute}
		}
		offers[i] = o
	}
	c.Offers = offers
	return c
}
