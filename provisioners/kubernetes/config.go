//go:build clouds

package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/forewarm/forewarm/provisioners"
)

// Config describes one namespace of one cluster.
type Config struct {
	Name string `yaml:"name"`
	// Kubeconfig is the path of a kubeconfig file; Context is one of its contexts,
	// empty for its current one.
	Kubeconfig string `yaml:"kubeconfig"`
	Context    string `yaml:"context"`
	// InCluster takes address and credentials from the pod that the program runs
	// in, instead of a kubeconfig.
	InCluster bool `yaml:"in_cluster"`
	// Namespace is where placeholders and records live. Default "forewarm".
	Namespace string  `yaml:"namespace"`
	Offers    []Offer `yaml:"offers"`
	// Use is UseReserved, the default, or UseObserved.
	Use string `yaml:"use"`
	// KeepFor is, with UseObserved, for how long a node stays in keeping after the last
	// Keep. Default 15 min.
	KeepFor time.Duration `yaml:"keep_for"`
	// WarmWith is, with UseObserved, what makes the autoscaler boot and keep nodes.
	// Default auto.
	WarmWith WarmWith `yaml:"warm_with"`
	// PlaceholderNamespaces are, with UseObserved, the namespaces of other installations in
	// the same cluster. Pods there that are marked as placeholders are no work.
	PlaceholderNamespaces []string `yaml:"placeholder_namespaces"`
	// Image is the placeholder's image. It needs sh, date and sleep, and for
	// Probe logs also base64 and what nvidia-smi needs. Default busybox.
	Image            string   `yaml:"image"`
	ImagePullSecrets []string `yaml:"image_pull_secrets"`
	// PriorityClass ranks placeholders below real work; empty is refused by
	// Validate, default "forewarm-placeholder".
	PriorityClass string `yaml:"priority_class"`
	// Probe is how the GPUs' UUIDs are learnt: "logs" has the placeholder run
	// nvidia-smi, "none" makes names up. Default none.
	Probe Probe `yaml:"probe"`
	// Daemon has placeholders run the node's daemon.
	Daemon Daemon `yaml:"daemon"`
	// Address is what Instance.Address says: "node_name" or "internal_ip". Default
	// node_name, which is what a pod selects a node by.
	Address Address `yaml:"address"`
	// PendingTimeout is how long a placeholder may wait for a node before the
	// machine is given up. Default 20 min.
	PendingTimeout time.Duration `yaml:"pending_timeout"`
	// CapacityMemory is how long, after a machine was given up for want of a node,
	// others of its type are refused at once. Default 3 min.
	CapacityMemory time.Duration `yaml:"capacity_memory"`
	// WorkNamespaces are where pods may take a placeholder's place, "*" for
	// everywhere. Default: Namespace alone.
	WorkNamespaces []string `yaml:"work_namespaces"`
	// InterruptionTaints are keys of node taints which announce the node's end,
	// beside those that the program knows.
	InterruptionTaints []string `yaml:"interruption_taints"`
	// CordonOnDelete marks the node unschedulable when its machine is deleted and
	// nothing else is on it.
	CordonOnDelete bool `yaml:"cordon_on_delete"`
	// Timeout bounds one call of the API server. Default 30 s.
	Timeout time.Duration `yaml:"timeout"`
}

// Probe is a way to learn the UUIDs of a node's GPUs.
type Probe string

// The probes.
const (
	ProbeNone Probe = "none"
	ProbeLogs Probe = "logs"
)

// Address is a way to name a node.
type Address string

// The addresses.
const (
	AddressNodeName   Address = "node_name"
	AddressInternalIP Address = "internal_ip"
)

// WithDefaults returns the config with every unset field set.
func (c Config) WithDefaults() Config {
	for _, field := range []struct {
		text     *string
		fallback string
	}{
		{&c.Name, "kubernetes"}, {&c.Namespace, "forewarm"}, {&c.Image, "busybox:1.37"},
		{&c.PriorityClass, "forewarm-placeholder"},
		{(*string)(&c.Probe), string(ProbeNone)}, {(*string)(&c.Address), string(AddressNodeName)},
	} {
		if *field.text == "" {
			*field.text = field.fallback
		}
	}
	for _, field := range []struct {
		length   *time.Duration
		fallback time.Duration
	}{
		{&c.PendingTimeout, 20 * time.Minute}, {&c.CapacityMemory, 3 * time.Minute}, {&c.Timeout, 30 * time.Second},
	} {
		if *field.length == 0 {
			*field.length = field.fallback
		}
	}
	c = c.withUse()
	if len(c.WorkNamespaces) == 0 {
		c.WorkNamespaces = []string{c.Namespace}
	}
	c.Offers = slices.Clone(c.Offers)
	for i := range c.Offers {
		c.Offers[i] = c.Offers[i].withDefaults()
	}
	return c
}

// Validate returns every mistake in the config, each with its field.
func (c Config) Validate() error {
	mistakes := []error{provisioners.CheckName(c.Name), c.Daemon.mistakes(c.Probe)}
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			mistakes = append(mistakes, fmt.Errorf(format, args...))
		}
	}
	wrong(c.InCluster == (c.Kubeconfig != ""), "kubeconfig, in_cluster: want exactly one of them")
	wrong(c.InCluster && c.Context != "", "context: goes with kubeconfig, not with in_cluster")
	wrong(len(validation.IsDNS1123Label(c.Namespace)) > 0, "namespace: %q is no name of a namespace", c.Namespace)
	wrong(len(validation.IsDNS1123Subdomain(c.PriorityClass)) > 0, "priority_class: %q is no name of a PriorityClass",
		c.PriorityClass)
	wrong(c.Image == "", "image: is empty")
	wrong(c.Probe != ProbeNone && c.Probe != ProbeLogs, "probe: %q is not none or logs", c.Probe)
	wrong(c.Address != AddressNodeName && c.Address != AddressInternalIP, "address: %q is not node_name or internal_ip",
		c.Address)
	wrong(c.PendingTimeout < minPending, "pending_timeout: %v is below %v", c.PendingTimeout, minPending)
	wrong(c.CapacityMemory < 0, "capacity_memory: %v is negative", c.CapacityMemory)
	wrong(c.Timeout < time.Second, "timeout: %v is below 1s", c.Timeout)
	for i, namespace := range c.WorkNamespaces {
		wrong(namespace != everywhere && len(validation.IsDNS1123Label(namespace)) > 0,
			"work_namespaces[%d]: %q is no name of a namespace", i, namespace)
	}
	wrong(len(c.Offers) == 0, "offers: want at least one")
	mistakes = append(mistakes, c.offerMistakes()...)
	return errors.Join(append(mistakes, c.useMistakes()...)...)
}

const (
	// minPending is above what a node that stands ready needs to take a pod.
	minPending = time.Minute
	everywhere = "*"
)

func (c Config) offerMistakes() (mistakes []error) {
	seen := map[[2]string]bool{}
	for i, offer := range c.Offers {
		key := [2]string{offer.Type, offer.Region}
		if seen[key] {
			mistakes = append(mistakes, fmt.Errorf("offers[%d]: type %q is there twice in region %q", i, offer.Type,
				offer.Region))
		}
		seen[key] = true
		for _, err := range offer.validateFields() {
			mistakes = append(mistakes, fmt.Errorf("offers[%d]: %w", i, err))
		}
	}
	return mistakes
}
