//go:build clouds

package kubernetes

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
)

// Offer is one kind of node, and what a placeholder asks for to hold one.
type Offer struct {
	Type   string `yaml:"type"`
	Region string `yaml:"region"`
	Model  string `yaml:"model"`
	GPUs   int    `yaml:"gpus"`
	// Resource is the device plugin's name for a GPU. Default nvidia.com/gpu.
	Resource   string             `yaml:"resource"`
	MemoryMiB  int                `yaml:"memory_mib"` // of one GPU
	Price      provisioners.Price `yaml:"price_per_hour"`
	MinBilling time.Duration      `yaml:"min_billing"`
	Boot       Boot               `yaml:"boot"`
	// Interruptible nodes, such as spot, may be taken back; Notice is how long
	// before that a taint says so.
	Interruptible bool          `yaml:"interruptible"`
	Notice        time.Duration `yaml:"notice"`

	NodeSelector map[string]string `yaml:"node_selector"`
	NodeAffinity []Match           `yaml:"node_affinity"` // all of them must hold
	Tolerations  []Toleration      `yaml:"tolerations"`
	RuntimeClass string            `yaml:"runtime_class"`
	// Requests are held beside the GPUs, such as cpu and memory. Default 10m and
	// 32Mi, what the placeholder itself needs.
	Requests map[string]string `yaml:"requests"`
	// ProvisioningRequest is the class of a ProvisioningRequest that asks the
	// autoscaler for the node; empty leaves it to find the pending pod.
	ProvisioningRequest string `yaml:"provisioning_request"`
}

// Boot is the prior for the time from the placeholder's creation to a usable
// node.
type Boot struct {
	P50 time.Duration `yaml:"p50"`
	P95 time.Duration `yaml:"p95"`
}

// Match is a condition on a node's labels.
type Match struct {
	Key      string   `yaml:"key"`
	Operator string   `yaml:"operator"` // In, NotIn, Exists, DoesNotExist, Gt, Lt
	Values   []string `yaml:"values"`
}

// Toleration is a taint that the placeholder bears.
type Toleration struct {
	Key      string `yaml:"key"`
	Operator string `yaml:"operator"` // Exists or Equal
	Value    string `yaml:"value"`
	Effect   string `yaml:"effect"`
}

func (o Offer) withDefaults() Offer {
	if o.Resource == "" {
		o.Resource = "nvidia.com/gpu"
	}
	if o.Boot == (Boot{}) {
		o.Boot = Boot{P50: 4 * time.Minute, P95: 10 * time.Minute}
	}
	requests := map[string]string{"cpu": "10m", "memory": "32Mi"}
	for name, amount := range o.Requests {
		requests[name] = amount
	}
	o.Requests = requests
	return o
}

const mostGPUs = 1024

func (o Offer) validateFields() (mistakes []error) {
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			mistakes = append(mistakes, fmt.Errorf(format, args...))
		}
	}
	wrong(!labelValue(o.Type), "type: %q cannot be the value of a label", o.Type)
	wrong(o.Model == "", "model: is empty")
	wrong(o.GPUs < 1 || o.GPUs > mostGPUs, "gpus: %d is not between 1 and %d", o.GPUs, mostGPUs)
	wrong(!extendedName(o.Resource), "resource: %q is not a name such as nvidia.com/gpu", o.Resource)
	wrong(o.MemoryMiB < 0, "memory_mib: %d is negative", o.MemoryMiB)
	wrong(o.Price < 0, "price_per_hour: %d is negative", o.Price)
	wrong(o.MinBilling < 0 || o.Notice < 0, "min_billing, notice: want 0 or more, have %v and %v", o.MinBilling,
		o.Notice)
	wrong(o.Boot.P50 <= 0 || o.Boot.P95 < o.Boot.P50, "boot: want 0 < p50 <= p95, have p50 %v, p95 %v", o.Boot.P50,
		o.Boot.P95)
	for name, amount := range o.Requests {
		quantity, err := resource.ParseQuantity(amount)
		wrong(err != nil || quantity.Sign() < 0, "requests: %s: %q is no amount", name, amount)
		wrong(name == o.Resource, "requests: %s: is what gpus says", name)
	}
	for i, match := range o.NodeAffinity {
		wrong(!operators[match.Operator],
			"node_affinity[%d]: operator: %q is not In, NotIn, Exists, DoesNotExist, Gt or Lt", i, match.Operator)
		wrong(match.Key == "", "node_affinity[%d]: key: is empty", i)
	}
	for i, t := range o.Tolerations {
		wrong(t.Operator != "" && t.Operator != string(corev1.TolerationOpExists) &&
			t.Operator != string(corev1.TolerationOpEqual),
			"tolerations[%d]: operator: %q is not Exists or Equal", i, t.Operator)
	}
	wrong(o.ProvisioningRequest != "" && len(validation.IsDNS1123Subdomain(o.ProvisioningRequest)) > 0,
		"provisioning_request: %q is no name of a class", o.ProvisioningRequest)
	return mistakes
}

var operators = map[string]bool{"In": true, "NotIn": true, "Exists": true, "DoesNotExist": true, "Gt": true, "Lt": true}

// labelValue reports whether text can be found again by a label.
func labelValue(text string) bool { return text != "" && len(validation.IsValidLabelValue(text)) == 0 }

// extendedName reports whether name is a device plugin's: cpu and memory have no
// slash in them, and are never GPUs.
func extendedName(name string) bool {
	return strings.Contains(name, "/") && len(validation.IsQualifiedName(name)) == 0
}

func (o Offer) portOffer() provisioners.Offer {
	return provisioners.Offer{
		Type: o.Type, Region: o.Region, Model: o.Model, GPUs: o.GPUs, MemoryMiB: o.MemoryMiB,
		Price: money.MicroUSD(o.Price), MinBilling: o.MinBilling,
		Boot:          provisioners.Boot{P50: o.Boot.P50, P95: o.Boot.P95},
		Interruptible: o.Interruptible || o.Notice > 0, Notice: o.Notice,
	}
}
