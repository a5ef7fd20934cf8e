//go:build clouds

package gcp

import (
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/bootscript"
)

// Market is how a machine is bought.
type Market string

// The markets.
const (
	OnDemand    Market = "on_demand"
	Spot        Market = "spot"        // Google may take it back with 30 s notice
	Reservation Market = "reservation" // from a reservation of the project's
)

// Probe is how a machine proves that it can be used.
type Probe string

// The probes.
const (
	// GuestAttributes waits for the start-up script's report of the GPUs.
	GuestAttributes Probe = "guest_attributes"
	// NoProbe believes the status RUNNING and makes up the devices' ids. It is for
	// images on which the start-up script cannot run.
	NoProbe Probe = "none"
)

// Config describes machines in one project.
type Config struct {
	Name    string `yaml:"name"`
	Project string `yaml:"project"`
	// Endpoint replaces https://compute.googleapis.com: https, or http to this
	// machine, to which no credentials are sent. Empty means Google's.
	Endpoint string `yaml:"endpoint"`
	// CredentialsFile is a file with credentials; empty means the application
	// default credentials of the process.
	CredentialsFile string  `yaml:"credentials_file"`
	Offers          []Offer `yaml:"offers"`
	// Image is the boot image, as projects/<p>/global/images/family/<f> or
	// projects/<p>/global/images/<i>. It needs the NVIDIA driver, unless the
	// start-up script installs it.
	Image    string `yaml:"image"`
	DiskGiB  int64  `yaml:"disk_gib"`  // of the boot disk; default 200
	DiskType string `yaml:"disk_type"` // default pd-balanced
	// Network and Subnetwork are names or paths. Default: the network default.
	Network    string `yaml:"network"`
	Subnetwork string `yaml:"subnetwork"`
	// ExternalIP gives machines an address on the internet.
	ExternalIP bool `yaml:"external_ip"`
	// LoginUser is whom holders log in as by ssh, as the image or the project's
	// metadata has it. Empty leaves it to their own ssh.
	LoginUser string `yaml:"login_user"`
	// ServiceAccount is the e-mail of the account that machines act as. Empty
	// means none, which is safest: whoever runs on a machine can use it.
	ServiceAccount string   `yaml:"service_account"`
	Tags           []string `yaml:"tags"` // network tags, for firewall rules
	// StartupScriptFile is run at each boot; it is read when the program starts. A
	// machine is ready once it ended with 0.
	StartupScriptFile string `yaml:"startup_script_file"`
	// Daemon is where machines get the daemon of their node from, which they start once
	// that script ended with 0: none (the default), download or image.
	Daemon bootscript.Source `yaml:"daemon"`
	Probe  Probe             `yaml:"probe"` // default guest_attributes
	// OperationWait is how long Create waits for a stock-out to show. Default 20 s.
	OperationWait time.Duration `yaml:"operation_wait"`
	// RequestTimeout bounds every other call of the API. Default 30 s.
	RequestTimeout time.Duration `yaml:"request_timeout"`
	// StateFile keeps the tokens of ended machines for longer than Google keeps
	// its operations. Empty means memory only.
	StateFile string `yaml:"state_file"`
}

// Offer is one machine type in one zone.
type Offer struct {
	Type        string `yaml:"type"`         // what pools call it
	MachineType string `yaml:"machine_type"` // Google's name, such as a3-highgpu-8g
	Zone        string `yaml:"zone"`         // the pool's region
	// AcceleratorType and AcceleratorCount are for machine types to which GPUs are
	// attached (N1); the others bring theirs.
	AcceleratorType  string `yaml:"accelerator_type"`
	AcceleratorCount int64  `yaml:"accelerator_count"`
	Market           Market `yaml:"market"` // default on_demand
	// Reservation is a name, or projects/<p>/reservations/<name> of a shared one.
	Reservation string `yaml:"reservation"`
	// ReservationBound is for reservations that end their machines with them, as
	// future reservations in calendar mode do.
	ReservationBound bool               `yaml:"reservation_bound"`
	Model            string             `yaml:"model"`
	GPUs             int                `yaml:"gpus"`
	MemoryMiB        int                `yaml:"memory_mib"` // of one GPU
	Price            provisioners.Price `yaml:"price_per_hour"`
	MinBilling       time.Duration      `yaml:"min_billing"` // default 1 min
	Boot             Boot               `yaml:"boot"`
	// From and Until are the usable window of a future reservation.
	From  time.Time `yaml:"from"`
	Until time.Time `yaml:"until"`
}

// Boot is what is believed of the time to a proved ready machine until it has
// been measured.
type Boot struct {
	P50 time.Duration `yaml:"p50"` // default 3 min
	P95 time.Duration `yaml:"p95"` // default 3 times p50
}

// preemptionNotice is how long before the end Google announces that it takes a
// spot machine back.
const preemptionNotice = 30 * time.Second

// WithDefaults returns the config with every unset field set that has a default.
func (c Config) WithDefaults() Config {
	defaultTo(&c.Name, "gcp")
	defaultTo(&c.DiskGiB, 200)
	defaultTo(&c.DiskType, "pd-balanced")
	defaultTo(&c.Probe, GuestAttributes)
	defaultTo(&c.Daemon, bootscript.None)
	defaultTo(&c.OperationWait, 20*time.Second)
	defaultTo(&c.RequestTimeout, 30*time.Second)
	if c.Network == "" && c.Subnetwork == "" {
		c.Network = "default"
	}
	offers := make([]Offer, len(c.Offers))
	for i, offer := range c.Offers {
		defaultTo(&offer.Market, OnDemand)
		defaultTo(&offer.MinBilling, time.Minute)
		defaultTo(&offer.Boot.P50, 3*time.Minute)
		defaultTo(&offer.Boot.P95, 3*offer.Boot.P50)
		offers[i] = offer
	}
	c.Offers = offers
	return c
}

func defaultTo[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}

func (o Offer) portOffer(probe Probe) provisioners.Offer {
	offer := provisioners.Offer{
		Type: o.Type, Region: o.Zone, Model: o.Model, GPUs: o.GPUs, MemoryMiB: o.MemoryMiB,
		Price: money.MicroUSD(o.Price), MinBilling: o.MinBilling,
		Boot:          provisioners.Boot{P50: o.Boot.P50, P95: o.Boot.P95},
		Interruptible: o.Market == Spot, From: o.From, Until: o.Until,
	}
	if o.Market == Spot && probe == GuestAttributes {
		offer.Notice = preemptionNotice
	}
	return offer
}
