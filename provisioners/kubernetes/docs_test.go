//go:build clouds

package kubernetes_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
)

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// exampleFile is what the examples show of a configuration.
type exampleFile struct {
	Provisioners []struct {
		Kind   string            `yaml:"kind"`
		Config kubernetes.Config `yaml:"config"`
	} `yaml:"provisioners"`
	Pools []map[string]any `yaml:"pools"`
}

// Every example of the manual is one that works, also with what it comments out.
func TestExamplesOfTheManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/provisioners/kubernetes.md")
	require.NoError(t, err)
	blocks := fenced.FindAllSubmatch(page, -1)
	require.Len(t, blocks, 2)
	commented := regexp.MustCompile(`(?m)^(\s+)# (provisioning_request:|daemon:)`).ReplaceAll(blocks[1][1], []byte("$1$2"))
	require.NotEqual(t, blocks[1][1], commented)
	for _, block := range [][]byte{blocks[0][1], blocks[1][1], commented} {
		var file exampleFile
		decodeStrictly(t, block, &file)
		require.Len(t, file.Provisioners, 1)
		require.Equal(t, "kubernetes", file.Provisioners[0].Kind)
		config := file.Provisioners[0].Config
		require.Equal(t, "/etc/forewarm/kubeconfig", config.Kubeconfig)
		if config.Context != "" {
			require.Equal(t, "prod", config.Context)
			config.Context = "test"
		}
		config.Kubeconfig = writeKubeconfig(t, "http://127.0.0.1:1")
		made, err := kubernetes.New(config, clock.NewManual(start))
		require.NoError(t, err)
		offers, err := made.Offers(t.Context())
		require.NoError(t, err)
		for _, pool := range file.Pools {
			require.Equal(t, pool["provisioner"], made.Name())
			require.Equal(t, pool["instance_type"], offers[0].Type)
			require.Equal(t, pool["region"], offers[0].Region)
			require.Equal(t, pool["gpus_per_node"], offers[0].GPUs)
			require.Equal(t, pool["gpu_memory_mib"], offers[0].MemoryMiB)
		}
	}
}

func decodeStrictly(t *testing.T, text []byte, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(into), "%s", text)
}

// readRules reads the rules of a manifest.
func readRules(t *testing.T, path string, rights map[apitest.Use]bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var object struct {
			Kind  string
			Rules []struct {
				APIGroups []string `yaml:"apiGroups"`
				Resources []string
				Verbs     []string
			}
		}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		for _, rule := range object.Rules {
			require.Len(t, rule.APIGroups, 1)
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights[apitest.Use{Verb: verb, Group: rule.APIGroups[0], Resource: resource}] = true
				}
			}
		}
	}
}

// The manifests grant what the adapter does, and nothing else.
func TestRights(t *testing.T) {
	t.Parallel()
	rights := map[apitest.Use]bool{}
	readRules(t, "../../deploy/kubernetes/rbac.yaml", rights)
	require.NotContains(t, rights, apitest.Use{Verb: "patch", Resource: "nodes"})
	readRules(t, "../../deploy/kubernetes/rbac-cordon.yaml", rights)

	w := newWorld(t, withProvisioningRequest, func(c *kubernetes.Config) {
		c.Probe,
			c.CordonOnDelete = kubernetes.ProbeLogs, true
		c.Daemon.Program = "/usr/local/bin/forewarm-node"
	})
	w.server.Define("provisioningrequests", "ProvisioningRequest", "autoscaling.x-k8s.io/v1")
	w.boot = 2 * time.Minute
	spec := w.testSpec()
	spec.ExpiresAt = start.Add(time.Hour)
	spec.Daemon = provisioners.Daemon{URL: "https://forewarm.example", Token: "secret"}
	made, err := w.Create(t.Context(), "token", spec)
	require.NoError(t, err)
	w.advanceClock(90 * time.Second)
	w.requirePhase(t, made.ID, "booting")
	w.advanceClock(90 * time.Second)
	w.server.SetLog("forewarm", podName(made.ID), packProbe("0, GPU-8f1c, 81920, 0"))
	w.requirePhase(t, made.ID, "running")
	require.NoError(t, w.Renew(t.Context(), made.ID, start.Add(2*time.Hour)))
	require.NoError(t, w.Delete(t.Context(), made.ID))
	w.advanceClock(10 * time.Second)
	w.requirePhase(t, made.ID, "terminated")
	w.clock.Advance(50 * time.Hour)
	w.listInstances(t)
	require.Equal(t, w.server.Used(), rights)
}

// So it is with use: observed, by placeholders, by buffers, and where Kueue is.
func TestRightsOfObserving(t *testing.T) {
	t.Parallel()
	rights := map[apitest.Use]bool{}
	readRules(t, "../../deploy/kubernetes/rbac-observe.yaml", rights)
	used := map[apitest.Use]bool{}
	for _, w := range []*plainWorld{newPlainWorld(t), newBufferWorld(t, bufferVersion)} {
		w.server.Define("workloads", "Workload", "kueue.x-k8s.io/v1beta2")
		kept := w.warmNode(t, "a")
		for range 15 {
			w.keep(t, kept.ID)
			w.advanceClock(2 * time.Minute)
		}
		mark := w.look(t, "").Mark
		w.submit(t, wholeNode)
		w.submit(t, wholeNode) // which waits
		w.look(t, mark)
		booting := w.askNode(t, "b")
		w.advanceClock(2 * time.Minute)
		w.keep(t, kept.ID, booting.ID)
		require.NoError(t, w.Observed.Delete(t.Context(), kept.ID))
		require.NoError(t, w.Observed.Delete(t.Context(), booting.ID))
		w.clock.Advance(50 * time.Hour)
		list, err := w.Observed.List(t.Context(), "dep")
		require.NoError(t, err)
		require.Len(t, list.Instances, 2)
		for use := range w.server.Used() {
			used[use] = true
		}
	}
	require.Equal(t, used, rights)
	for use := range used {
		reads := use.Verb == "get" || use.Verb == "list" || use.Verb == "watch"
		require.True(t, reads || use.Resource != "nodes" && use.Group != "kueue.x-k8s.io", "%+v", use)
	}
}

// The admin's page has one configuration, which works.
func TestExampleOfObserving(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/kubernetes.md")
	require.NoError(t, err)
	blocks := fenced.FindAllSubmatch(page, -1)
	require.Len(t, blocks, 1)
	var file exampleFile
	decodeStrictly(t, blocks[0][1], &file)
	config := file.Provisioners[0].Config
	require.Equal(t, kubernetes.UseObserved, config.Use)
	config.Kubeconfig = writeKubeconfig(t, "http://127.0.0.1:1")
	made, err := kubernetes.NewObserved(config, clock.NewManual(start))
	require.NoError(t, err)
	offers, err := made.Offers(t.Context())
	require.NoError(t, err)
	require.True(t, offers[0].Observed)
	pool := file.Pools[0]
	require.Equal(t, "observed", pool["use"])
	require.Equal(t, pool["provisioner"], made.Name())
	require.Equal(t, pool["instance_type"], offers[0].Type)
	require.Equal(t, pool["region"], offers[0].Region)
	require.Equal(t, pool["gpus_per_node"], offers[0].GPUs)
	for _, path := range regexp.MustCompile(`deploy/kubernetes/[a-z-]+\.yaml`).FindAllString(string(page), -1) {
		require.FileExists(t, "../../"+path)
	}
}

func TestTheExampleOfWork(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/kubernetes/work.yaml")
	require.NoError(t, err)
	var pod struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			NodeSelector map[string]string `yaml:"nodeSelector"`
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &pod))
	require.Equal(t, "NODE", pod.Metadata.Labels["forewarm.dev/node"])
	require.Equal(t, "HOST", pod.Spec.NodeSelector[corev1.LabelHostname])

	text, err = os.ReadFile("../../deploy/kubernetes/placeholders.yaml")
	require.NoError(t, err)
	require.Contains(t, string(text), "name: "+testConfig("x").WithDefaults().PriorityClass)
	require.Contains(t, string(text), "name: "+testConfig("x").WithDefaults().Namespace)
}
