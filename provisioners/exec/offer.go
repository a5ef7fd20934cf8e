package exec

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
)

// Offer is one machine type that the scripts can make.
type Offer struct {
	Type          string             `yaml:"type"`
	Region        string             `yaml:"region"`
	Model         string             `yaml:"model"`
	GPUs          int                `yaml:"gpus"`
	MemoryMiB     int                `yaml:"memory_mib"` // of one GPU
	Price         provisioners.Price `yaml:"price_per_hour"`
	MinBilling    time.Duration      `yaml:"min_billing"`
	Boot          Boot               `yaml:"boot"`
	Interruptible bool               `yaml:"interruptible"`
	Notice        time.Duration      `yaml:"notice"`
}

// Boot is the prior for the time from Create to a machine that can be used.
type Boot struct {
	P50 time.Duration `yaml:"p50"`
	P95 time.Duration `yaml:"p95"`
}

// wireOffer is an offer as a script writes it.
type wireOffer struct {
	Type              string             `json:"type"`
	Region            string             `json:"region"`
	Model             string             `json:"model"`
	GPUs              int                `json:"gpus"`
	MemoryMiB         int                `json:"memory_mib"`
	Price             provisioners.Price `json:"price_per_hour"`
	MinBillingSeconds int64              `json:"min_billing_seconds"`
	BootP50Seconds    int64              `json:"boot_p50_seconds"`
	BootP95Seconds    int64              `json:"boot_p95_seconds"`
	Interruptible     bool               `json:"interruptible"`
	NoticeSeconds     int64              `json:"notice_seconds"`
}

const mostGPUs = 1024

func checkOffers(field string, offers []Offer) error {
	var mistakes []error
	seen := map[[2]string]bool{}
	for i, offer := range offers {
		key := [2]string{offer.Type, offer.Region}
		if seen[key] {
			mistakes = append(mistakes, fmt.Errorf("%s[%d]: type %q is there twice in region %q", field, i, offer.Type,
				offer.Region))
		}
		seen[key] = true
		if err := offer.validateFields(); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s[%d]: %w", field, i, err))
		}
	}
	return errors.Join(mistakes...)
}

func (o Offer) validateFields() error {
	switch {
	case o.Type == "":
		return errors.New("type: is empty")
	case o.Model == "":
		return errors.New("model: is empty")
	case o.GPUs < 1 || o.GPUs > mostGPUs:
		return fmt.Errorf("gpus: %d is not between 1 and %d", o.GPUs, mostGPUs)
	case o.MemoryMiB < 0:
		return fmt.Errorf("memory_mib: %d is negative", o.MemoryMiB)
	case o.Price < 0:
		return fmt.Errorf("price_per_hour: %d is negative", o.Price)
	case o.MinBilling < 0 || o.Notice < 0:
		return fmt.Errorf("min_billing, notice: want 0 or more, have %v and %v", o.MinBilling, o.Notice)
	case o.Boot.P50 < 0 || o.Boot.P95 < o.Boot.P50:
		return fmt.Errorf("boot: want 0 <= p50 <= p95, have p50 %v, p95 %v", o.Boot.P50, o.Boot.P95)
	}
	return nil
}

func (s *Scripts) configuredOffers() []provisioners.Offer {
	offers := make([]provisioners.Offer, len(s.config.Offers))
	for i, offer := range s.config.Offers {
		offers[i] = offer.portOffer(s.config.Simulated)
	}
	return offers
}

// parseOffers reads the script's offers. One that makes no sense spoils them all: a
// pool whose price was misread costs more than one that waits.
func (s *Scripts) parseOffers(a answer) ([]provisioners.Offer, error) {
	if !a.hasOnly("offers") {
		return nil, notUnderstood(verbOffers, errors.New("it holds no offers, or something else too"))
	}
	read := make([]Offer, len(a.Offers))
	offers := make([]provisioners.Offer, len(a.Offers))
	for i, offer := range a.Offers {
		read[i] = offer.configOffer()
		offers[i] = read[i].portOffer(s.config.Simulated)
	}
	if err := checkOffers("offers", read); err != nil {
		return nil, notUnderstood(verbOffers, err)
	}
	return offers, nil
}

func (o wireOffer) configOffer() Offer {
	return Offer{
		Type: o.Type, Region: o.Region, Model: o.Model, GPUs: o.GPUs, MemoryMiB: o.MemoryMiB, Price: o.Price,
		MinBilling: durationOf(o.MinBillingSeconds), Boot: Boot{P50: durationOf(o.BootP50Seconds),
			P95: durationOf(o.BootP95Seconds)},
		Interruptible: o.Interruptible, Notice: durationOf(o.NoticeSeconds),
	}
}

// durationOf keeps a number that no duration can hold from turning into another.
func durationOf(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(min(max(n, -most), most)) * time.Second
}

func (o Offer) portOffer(simulated bool) provisioners.Offer {
	return provisioners.Offer{
		Type: o.Type, Region: o.Region, Model: o.Model, GPUs: o.GPUs, MemoryMiB: o.MemoryMiB,
		Price: money.MicroUSD(o.Price), MinBilling: o.MinBilling,
		Boot:          provisioners.Boot{P50: o.Boot.P50, P95: o.Boot.P95},
		Interruptible: o.Interruptible, Notice: o.Notice, Simulated: simulated,
	}
}
