package ec2test

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/money"
)

// Config describes a region. The zero value is one with a type of 8 and a type
// of 4 GPUs in two zones.
type Config struct {
	Zones        []string
	Types        []Type
	Images       []Image
	Subnets      map[string]string // zones by subnet
	Groups       []string          // the security groups that exist
	Reservations []Reservation
	// AccessKeys are the ids of keys that may call; none means any. Signatures
	// are not checked.
	AccessKeys []string
	// VCPULimit is the account's quota of on-demand vCPUs; 0 is without limit.
	VCPULimit int
	// PageSize bounds the rows of one page, however many are asked for.
	PageSize int
	// Lag is how old the world is that the Describe calls show, and TagLag how
	// long a new machine cannot be tagged.
	Lag, TagLag time.Duration
	// Pending is how long a machine takes to run, Report how long after that it
	// has reported its GPUs, Ending how long it takes to be terminated.
	Pending, Report, Ending time.Duration
	// Shown is how long a terminated machine can be described, Remembered how
	// long its client token is known.
	Shown, Remembered time.Duration
	// Tick is how often a machine looks whether its time is over.
	Tick time.Duration
}

// Type is one instance type.
type Type struct {
	Name       string
	GPU        string // as the driver names it
	GPUs       int
	MemoryMiB  int // of one GPU
	VCPUs      int
	OnDemand   money.MicroUSD // an hour
	Spot       money.MicroUSD
	Block      money.MicroUSD
	Stock      int      // machines at once in each zone; 0 is without limit
	MissesFrom []string // zones that do not have the type at all
}

// Image is one machine image.
type Image struct {
	ID, RootDevice string
	Disks          []string // device names of its EBS volumes
}

// Reservation is an on-demand capacity reservation, or a capacity block.
type Reservation struct {
	ID, Type, Zone string
	Count          int
	Block          bool
	Start, End     time.Time // of a block
}

// WithDefaults returns the config with every unset field set.
func (c Config) WithDefaults() Config {
	if c.Zones == nil {
		c.Zones = []string{"test-1a", "test-1b"}
	}
	if c.Types == nil {
		c.Types = []Type{
			{Name: "p5.48xlarge", GPU: "NVIDIA H100 80GB HBM3", GPUs: 8, MemoryMiB: 81_559, VCPUs: 192,
				OnDemand: 55 * money.USD, Spot: 20 * money.USD, Block: 31 * money.USD},
			{Name: "g6.12xlarge", GPU: "NVIDIA L4", GPUs: 4, MemoryMiB: 23_034, VCPUs: 48,
				OnDemand: 4_601_600, Spot: 1_500_000, Block: 3 * money.USD},
		}
	}
	if c.Images == nil {
		c.Images = []Image{{ID: "ami-0123456789abcdef0", RootDevice: "/dev/sda1", Disks: []string{"/dev/sda1"}}}
	}
	for _, field := range []struct {
		value   *time.Duration
		instead time.Duration
	}{
		{&c.Pending, 20 * time.Second}, {&c.Report, 2 * time.Minute}, {&c.Ending, 30 * time.Second},
		{&c.Shown, time.Hour}, {&c.Remembered, 24 * time.Hour}, {&c.Tick, time.Minute},
	} {
		if *field.value == 0 {
			*field.value = field.instead
		}
	}
	return c
}

func (c Config) findType(name string) (Type, bool) {
	i := slices.IndexFunc(c.Types, func(t Type) bool { return t.Name == name })
	if i < 0 {
		return Type{}, false
	}
	return c.Types[i], true
}

func (c Config) findImage(id string) (Image, bool) {
	i := slices.IndexFunc(c.Images, func(x Image) bool { return x.ID == id })
	if i < 0 {
		return Image{}, false
	}
	return c.Images[i], true
}

func (c Config) findReservation(id string) (Reservation, bool) {
	i := slices.IndexFunc(c.Reservations, func(x Reservation) bool { return x.ID == id })
	if i < 0 {
		return Reservation{}, false
	}
	return c.Reservations[i], true
}

// endsAt is when EC2 begins to terminate the machines of a block.
func (r Reservation) endsAt() time.Time { return r.End.Add(-30 * time.Minute) }
