package slurm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
)

// Offer is one machine type: GPUs of one node of a partition.
type Offer struct {
	Type      string             `yaml:"type"`
	Partition string             `yaml:"partition"`
	Gres      string             `yaml:"gres"` // without the count, such as gpu:a100; default gpu
	Model     string             `yaml:"model"`
	GPUs      int                `yaml:"gpus"`
	MemoryMiB int                `yaml:"memory_mib"` // of one GPU
	Price     provisioners.Price `yaml:"price_per_hour"`
	Boot      Boot               `yaml:"boot"`
	// MinBilling is the shortest time that is billed.
	MinBilling time.Duration `yaml:"min_billing"`
	// NameContains must be part of the name that the probe reports, if set. A GPU
	// that has it is of Model; another keeps its own name, and the health gate
	// refuses it.
	NameContains string `yaml:"name_contains"`

	// Exclusive takes the whole node, with all of its processors and memory.
	Exclusive         bool          `yaml:"exclusive"`
	CPUsPerGPU        int           `yaml:"cpus_per_gpu"`
	HostMemoryPerGPU  int           `yaml:"host_memory_mib_per_gpu"`
	TimeLimit         time.Duration `yaml:"time_limit"` // 0: the partition's default
	Constraint        string        `yaml:"constraint"`
	Account           string        `yaml:"account"`
	QOS               string        `yaml:"qos"`
	Reservation       string        `yaml:"reservation"`
	Interruptible     bool          `yaml:"interruptible"` // other jobs may preempt it
	PreemptionWarning time.Duration `yaml:"preemption_warning"`
}

// Boot is the prior for the time until a machine runs.
type Boot struct {
	P50 time.Duration `yaml:"p50"`
	P95 time.Duration `yaml:"p95"`
}

// mostGPUs is how many devices fit into a job's comment, which Slurm cuts at
// 1,023 characters.
const mostGPUs = 16

var (
	// plain is what Slurm's own names are made of; it keeps a name from being
	// read as a list, an option or a pattern.
	plain = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	gres  = regexp.MustCompile(`^gpu(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`)
)

func (o Offer) validateFields() []error {
	var mistakes []error
	wrong := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	for _, name := range []struct {
		field, value string
		required     bool
	}{
		{"type", o.Type, true}, {"partition", o.Partition, true},
		{"account", o.Account, false}, {"qos", o.QOS, false}, {"reservation", o.Reservation, false},
	} {
		if (name.value != "" || name.required) && !plain.MatchString(name.value) {
			wrong("%s: %q is not a name of letters, digits, _, . and -", name.field, name.value)
		}
	}
	if !gres.MatchString(o.Gres) {
		wrong("gres: %q is not gpu or gpu:TYPE, without a count", o.Gres)
	}
	if o.Model == "" {
		wrong("model: is empty")
	}
	if o.GPUs < 1 || o.GPUs > mostGPUs {
		wrong("gpus: %d is not between 1 and %d", o.GPUs, mostGPUs)
	}
	if strings.ContainsFunc(o.Constraint, func(r rune) bool { return r <= ' ' }) {
		wrong("constraint: %q has a space", o.Constraint)
	}
	if o.TimeLimit != 0 && o.TimeLimit < time.Minute {
		wrong("time_limit: %v is less than a minute, Slurm's unit", o.TimeLimit)
	}
	if o.Exclusive && (o.CPUsPerGPU != 0 || o.HostMemoryPerGPU != 0) {
		wrong("exclusive: takes all processors and memory; leave cpus_per_gpu and host_memory_mib_per_gpu out")
	}
	for field, value := range map[string]int64{
		"memory_mib": int64(o.MemoryMiB), "price_per_hour": int64(o.Price), "min_billing": int64(o.MinBilling),
		"boot.p50":     int64(o.Boot.P50),
		"cpus_per_gpu": int64(o.CPUsPerGPU), "host_memory_mib_per_gpu": int64(o.HostMemoryPerGPU),
		"preemption_warning": int64(o.PreemptionWarning),
	} {
		if value < 0 {
			wrong("%s: %d is negative", field, value)
		}
	}
	return mistakes
}

// findOffer returns the offer of the type.
func (c Config) findOffer(kind string) (Offer, bool) {
	i := slices.IndexFunc(c.Offers, func(o Offer) bool { return o.Type == kind })
	if i < 0 {
		return Offer{}, false
	}
	return c.Offers[i], true
}

func (o Offer) portOffer(region string) provisioners.Offer {
	return provisioners.Offer{
		Type: o.Type, Region: region, Model: o.Model, GPUs: o.GPUs, MemoryMiB: o.MemoryMiB,
		Price:      money.MicroUSD(o.Price),
		MinBilling: o.MinBilling, Boot: provisioners.Boot{P50: o.Boot.P50, P95: o.Boot.P95},
		Interruptible: o.Interruptible, Notice: o.PreemptionWarning,
	}
}
