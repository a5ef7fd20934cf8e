package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
)

// Config describes one simulated cloud.
type Config struct {
	Name string `yaml:"name"`
	// Seed decides every boot time and stock-out. The same seed and calls give
	// the same cloud.
	Seed   uint64  `yaml:"seed"`
	Offers []Offer `yaml:"offers"`
	// StateFile keeps the cloud across restarts, as a real one would be kept.
	// Empty means memory only. One process at a time may use a file.
	StateFile string `yaml:"state_file"`
	// ListLag makes List show the world as it was that long ago.
	ListLag time.Duration `yaml:"list_lag"`
	// Terminating is how long a deleted machine takes to be gone, and is billed.
	// Default 30 s.
	Terminating time.Duration `yaml:"terminating"`
	// Remembered is how long Get and List still show a machine that is gone.
	// Default 10 min.
	Remembered time.Duration `yaml:"remembered"`
	// StockWindow is how long an offer stays in or out of stock. Default 10 min.
	StockWindow time.Duration `yaml:"stock_window"`
	// Faults are injected at the start, in order.
	Faults []Fault `yaml:"faults"`
}

// Offer is one machine type of the simulated cloud.
type Offer struct {
	Type       string             `yaml:"type"`
	Region     string             `yaml:"region"`
	Model      string             `yaml:"model"`
	GPUs       int                `yaml:"gpus"`
	MemoryMiB  int                `yaml:"memory_mib"` // of one GPU
	Price      provisioners.Price `yaml:"price_per_hour"`
	MinBilling time.Duration      `yaml:"min_billing"`
	Boot       Boot               `yaml:"boot"`
	// Stock is how many machines can exist at once; 0 means no limit.
	Stock int `yaml:"stock"`
	// OutOfStock is the share, 0 to 1, of stock windows in which none can be had.
	OutOfStock float64 `yaml:"out_of_stock"`
	// ReclaimAfter is the mean life of a machine before the provider takes it
	// back, exponentially distributed, as spot machines are; 0 means never.
	// Notice is how long before that it is announced.
	ReclaimAfter time.Duration `yaml:"reclaim_after"`
	Notice       time.Duration `yaml:"notice"`
}

// Boot is a log-normal distribution of boot times given by two of its
// quantiles; no boot is shorter than Min.
type Boot struct {
	P50 time.Duration `yaml:"p50"`
	P95 time.Duration `yaml:"p95"`
	Min time.Duration `yaml:"min"`
}

// WithDefaults returns the config with every unset field set. Without offers it
// has one: 8×A100 that boots in 4 minutes, 9 at the 95th percentile.
func (c Config) WithDefaults() Config {
	if c.Name == "" {
		c.Name = "sim"
	}
	if c.Terminating == 0 {
		c.Terminating = 30 * time.Second
	}
	if c.Remembered == 0 {
		c.Remembered = 10 * time.Minute
	}
	if c.StockWindow == 0 {
		c.StockWindow = 10 * time.Minute
	}
	if c.Offers == nil {
		c.Offers = []Offer{{
			Type: "sim-a100-8", Region: "sim-1", Model: "a100-80g", GPUs: 8, MemoryMiB: 81_920,
			Price: provisioners.Price(20 * money.USD), MinBilling: time.Minute,
			Boot: Boot{P50: 4 * time.Minute, P95: 9 * time.Minute, Min: time.Minute},
		}}
	}
	return c
}

// Validate returns every mistake in the config, each with its field.
func (c Config) Validate() error {
	mistakes := []error{provisioners.CheckName(c.Name)}
	for _, field := range []struct {
		name  string
		value time.Duration
	}{
		{"list_lag", c.ListLag}, {"terminating", c.Terminating},
		{"remembered", c.Remembered}, {"stock_window", c.StockWindow},
	} {
		if field.value < 0 {
			mistakes = append(mistakes, fmt.Errorf("%s: %v is negative", field.name, field.value))
		}
	}
	if len(c.Offers) == 0 {
		mistakes = append(mistakes, errors.New("offers: want at least one"))
	}
	seen := map[[2]string]bool{}
	for i, offer := range c.Offers {
		key := [2]string{offer.Type, offer.Region}
		if seen[key] {
			mistakes = append(mistakes, fmt.Errorf("offers[%d]: type %q is there twice in region %q", i, offer.Type,
				offer.Region))
		}
		seen[key] = true
		if err := offer.validateFields(); err != nil {
			mistakes = append(mistakes, fmt.Errorf("offers[%d]: %w", i, err))
		}
	}
	for i, fault := range c.Faults {
		if err := fault.validateFields(); err != nil {
			mistakes = append(mistakes, fmt.Errorf("faults[%d]: %w", i, err))
		}
	}
	return errors.Join(mistakes...)
}

func (o Offer) validateFields() error {
	switch {
	case o.Type == "":
		return errors.New("type: is empty")
	case o.GPUs < 1 || o.GPUs > 1024:
		return fmt.Errorf("gpus: %d is not between 1 and 1024", o.GPUs)
	case o.MemoryMiB < 0:
		return fmt.Errorf("memory_mib: %d is negative", o.MemoryMiB)
	case o.Price < 0:
		return fmt.Errorf("price_per_hour: %d is negative", o.Price)
	case o.MinBilling < 0:
		return fmt.Errorf("min_billing: %v is negative", o.MinBilling)
	case o.Stock < 0:
		return fmt.Errorf("stock: %d is negative", o.Stock)
	case !(o.OutOfStock >= 0 && o.OutOfStock <= 1): // also refuses NaN
		return fmt.Errorf("out_of_stock: %v is not between 0 and 1", o.OutOfStock)
	case o.ReclaimAfter < 0 || o.Notice < 0:
		return fmt.Errorf("reclaim_after, notice: want 0 or more, have %v and %v", o.ReclaimAfter, o.Notice)
	case o.Boot.P50 <= 0 || o.Boot.P95 < o.Boot.P50 || o.Boot.Min < 0:
		return fmt.Errorf("boot: want 0 < p50 <= p95 and min >= 0, have p50 %v, p95 %v, min %v", o.Boot.P50, o.Boot.P95,
			o.Boot.Min)
	}
	return nil
}

func (o Offer) portOffer() provisioners.Offer {
	return provisioners.Offer{
		Type: o.Type, Region: o.Region, Model: o.Model, GPUs: o.GPUs, MemoryMiB: o.MemoryMiB,
		Price: money.MicroUSD(o.Price), MinBilling: o.MinBilling,
		Boot: provisioners.Boot{P50: max(o.Boot.P50, o.Boot.Min), P95: max(o.Boot.P95, o.Boot.Min)}, Simulated: true,
		Interruptible: o.ReclaimAfter > 0 || o.Notice > 0, Notice: o.Notice,
	}
}
