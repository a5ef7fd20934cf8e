//go:build clouds

package kubernetes

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// What a cluster is for.
const (
	UseReserved = "reserved" // Forewarm holds nodes and hands out their GPUs: Cluster
	UseObserved = "observed" // nodes are kept warm for the cluster's own users: Observed
)

// WarmWith is what makes the autoscaler boot a node, and keep it.
type WarmWith string

// The ways of warming.
const (
	WarmAuto        WarmWith = "auto"        // a CapacityBuffer where the cluster has them, else a placeholder
	WarmPlaceholder WarmWith = "placeholder" // a pod below all real work
	WarmBuffer      WarmWith = "buffer"      // replicas of a CapacityBuffer
)

const (
	usualKeep = 15 * time.Minute
	// leastKeep leaves a kubelet the two minutes that it may take to show a placeholder
	// its new end, after the third of the time that Keep may come late.
	leastKeep = 5 * time.Minute
	// mostKeep bounds for how long nodes stay warm for a control plane that is gone.
	mostKeep = 24 * time.Hour
	// keepsPerLease is how many calls of Keep fit into KeepFor: two may be lost.
	keepsPerLease = 3
)

// withUse sets what the use leaves unset.
func (c Config) withUse() Config {
	if c.Use == "" {
		c.Use = UseReserved
	}
	if c.Use != UseObserved {
		return c
	}
	if c.KeepFor == 0 {
		c.KeepFor = usualKeep
	}
	if c.WarmWith == "" {
		c.WarmWith = WarmAuto
	}
	if len(c.WorkNamespaces) == 0 {
		c.WorkNamespaces = []string{everywhere}
	}
	return c
}

// useMistakes returns what is wrong with the use, and with fields that do not go with it.
func (c Config) useMistakes() (mistakes []error) {
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			mistakes = append(mistakes, fmt.Errorf(format, args...))
		}
	}
	if c.Use != UseObserved {
		wrong(c.Use != UseReserved, "use: %q is not %s or %s", c.Use, UseReserved, UseObserved)
		wrong(c.KeepFor != 0 || c.WarmWith != "", "keep_for, warm_with: are for use: observed only; leave them out")
		wrong(len(c.PlaceholderNamespaces) > 0, "placeholder_namespaces: is for use: observed only; leave it out")
		return mistakes
	}
	wrong(c.Daemon.Program != "", "daemon: is not for use: observed, in which nothing of ours runs on nodes; remove it")
	wrong(c.KeepFor < leastKeep || c.KeepFor > mostKeep, "keep_for: %v is not between %v and %v", c.KeepFor, leastKeep,
		mostKeep)
	wrong(!slices.Contains([]WarmWith{WarmAuto, WarmPlaceholder, WarmBuffer}, c.WarmWith),
		"warm_with: %q is not auto, placeholder or buffer", c.WarmWith)
	wrong(!slices.Equal(c.WorkNamespaces, []string{everywhere}),
		"work_namespaces: use: observed looks at all of them, for whoever does not cannot say that a node is "+
			"idle; remove it")
	for i, namespace := range c.PlaceholderNamespaces {
		wrong(len(validation.IsDNS1123Label(namespace)) > 0, "placeholder_namespaces[%d]: %q is no name of a namespace", i,
			namespace)
	}
	wrong(c.Probe != ProbeNone, "probe: nothing is probed with use: observed; remove it")
	wrong(c.CordonOnDelete, "cordon_on_delete: cooling a node leaves it as it is with use: observed; remove it")
	for i, offer := range c.Offers {
		wrong(offer.ProvisioningRequest != "", "offers[%d]: provisioning_request: is for use: reserved; remove it", i)
	}
	return mistakes
}
