//go:build clouds

package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
)

// Every mistake is named at once.
func TestMistakes(t *testing.T) {
	t.Parallel()
	_, err := kubernetes.New(kubernetes.Config{
		Name: "../x", Kubeconfig: "a", InCluster: true, Context: "c", Namespace: "N", PriorityClass: "_",
		Probe: "guess", Address: "moon",
		PendingTimeout: time.Second, CapacityMemory: -1, Timeout: time.Millisecond, WorkNamespaces: []string{"*", "_"},
		Offers: []kubernetes.Offer{
			{
				Type: "a b", GPUs: -1, Resource: "cpu", MemoryMiB: -1, Price: -1, MinBilling: -1,
				Boot:         kubernetes.Boot{P50: 2, P95: 1},
				Requests:     map[string]string{"cpu": "many", "nvidia.com/gpu": "1"},
				NodeAffinity: []kubernetes.Match{{Operator: "Is"}},
				Tolerations:  []kubernetes.Toleration{{Operator: "Likes"}}, ProvisioningRequest: "_",
			},
			{Type: "t", Region: "r", Model: "m", GPUs: 1, Requests: map[string]string{"nvidia.com/gpu": "1"}},
			{Type: "t", Region: "r", Model: "m", GPUs: 2000},
		},
	}, clock.NewManual(start))
	for _, want := range []string{
		`name "../x"`, "kubeconfig, in_cluster:", "context:", "namespace:", "priority_class:", "probe:", "address:",
		"pending_timeout:", "capacity_memory:", "timeout: 1ms", "work_namespaces[1]:",
		"offers[0]: type:", "offers[0]: model:", "offers[0]: gpus:", "offers[0]: resource:", "offers[0]: memory_mib:",
		"offers[0]: price_per_hour:", "offers[0]: min_billing, notice:", "offers[0]: boot:",
		"offers[0]: requests: cpu:",
		"offers[0]: node_affinity[0]: operator:", "offers[0]: node_affinity[0]: key:",
		"offers[0]: tolerations[0]: operator:",
		"offers[0]: provisioning_request:", "offers[1]: requests: nvidia.com/gpu:",
		"offers[2]: type \"t\" is there twice", "offers[2]: gpus:",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = kubernetes.New(kubernetes.Config{}, clock.NewManual(start))
	require.ErrorContains(t, err, "kubeconfig, in_cluster: want exactly one of them")
	require.ErrorContains(t, err, "offers: want at least one")
}

// What does not go with the use is named, each with what to do.
func TestMistakesOfUse(t *testing.T) {
	t.Parallel()
	c := testConfig("a")
	c.Use, c.KeepFor, c.WarmWith = kubernetes.UseObserved, time.Minute, "hope"
	c.Probe, c.CordonOnDelete, c.WorkNamespaces = kubernetes.ProbeLogs, true, []string{"team"}
	c.Offers[0].ProvisioningRequest = class
	_, err := kubernetes.NewObserved(c, clock.NewManual(start))
	for _, want := range []string{"keep_for: 1m0s is not between 5m0s and 24h0m0s", `warm_with: "hope"`, "probe:",
		"cordon_on_delete:", "work_namespaces:", "offers[0]: provisioning_request:"} {
		require.ErrorContains(t, err, want)
	}
	c = testConfig("a")
	c.KeepFor = time.Hour
	_, err = kubernetes.New(c, clock.NewManual(start))
	require.ErrorContains(t, err, "keep_for, warm_with: are for use: observed only")
	c.Use = "both"
	_, err = kubernetes.New(c, clock.NewManual(start))
	require.ErrorContains(t, err, `use: "both" is not reserved or observed`)
}

func TestCredentialsThatAreNotThere(t *testing.T) {
	t.Parallel()
	_, err := kubernetes.New(testConfig("/no/such/file"), clock.NewManual(start))
	require.ErrorContains(t, err, "/no/such/file")
	c := testConfig(writeKubeconfig(t, "http://127.0.0.1:1"))
	c.Context = "elsewhere"
	_, err = kubernetes.New(c, clock.NewManual(start))
	require.ErrorContains(t, err, "elsewhere")
	_, err = kubernetes.New(kubernetes.Config{InCluster: true, Offers: c.Offers}, clock.NewManual(start))
	require.ErrorContains(t, err, "reading the credentials of this pod")
}
