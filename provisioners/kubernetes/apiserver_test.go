//go:build clouds && envtest

package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

// The tests of this file speak to a real kube-apiserver, as the service account
// and with the manifests that deploy/kubernetes has: scripts/with-kube-apiserver
// starts one.

func adminConfig(t *testing.T) *rest.Config {
	t.Helper()
	path := os.Getenv("FOREWARM_TEST_KUBERNETES")
	require.NotEmpty(t, path, "run it with scripts/with-kube-apiserver")
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	config.QPS = -1
	return config
}

var plurals = map[string]string{
	"Namespace": "namespaces", "PriorityClass": "priorityclasses", "ServiceAccount": "serviceaccounts", "Role": "roles",
	"RoleBinding": "rolebindings", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
	"CustomResourceDefinition": "customresourcedefinitions",
}

// applyManifest makes a manifest's objects, in the namespace instead of "forewarm".
// What is there already stays.
func applyManifest(t *testing.T, admin *rest.Config, manifest, namespace string) {
	t.Helper()
	open, err := dynamic.NewForConfig(admin)
	require.NoError(t, err)
	if !strings.Contains(manifest, "/") {
		manifest = "../../deploy/kubernetes/" + manifest
	}
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var object map[string]any
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return
		}
		made := asJSON(t, object)
		if made.GetNamespace() != "" {
			made.SetNamespace(namespace)
		} else if made.GetKind() == "Namespace" {
			made.SetName(namespace)
		}
		version, err := schema.ParseGroupVersion(made.GetAPIVersion())
		require.NoError(t, err)
		_, err = open.Resource(version.WithResource(plurals[made.GetKind()])).Namespace(made.GetNamespace()).
			Create(context.Background(), made, metav1.CreateOptions{})
		if err != nil {
			require.ErrorContains(t, err, "already exists")
		}
	}
}

func asJSON(t *testing.T, object map[string]any) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	made := &unstructured.Unstructured{}
	require.NoError(t, made.UnmarshalJSON(text))
	return made
}

var worlds atomic.Int64

func realJobsOf(t *testing.T, admin *rest.Config) dynamic.NamespaceableResourceInterface {
	t.Helper()
	open, err := dynamic.NewForConfig(admin)
	require.NoError(t, err)
	return open.Resource(jobs)
}

// realWorld is a namespace of its own, with its own nodes.
func realWorld(t *testing.T, adjust ...func(*kubernetes.Config)) *world {
	t.Helper()
	admin, namespace := adminConfig(t), fmt.Sprintf("w%d-", worlds.Add(1))
	namespace += strings.ToLower(fmt.Sprintf("%x", time.Now().UnixNano()))
	for _, manifest := range []string{"placeholders.yaml", "rbac.yaml", "rbac-cordon.yaml"} {
		applyManifest(t, admin, manifest, namespace)
	}
	core, err := corev1client.NewForConfig(admin)
	require.NoError(t, err)
	w := &world{clock: clock.NewManual(time.Now())}
	w.hands = hands{t: t, scope: namespace, core: core, jobs: realJobsOf(t, admin),
		clock: w.clock, boot: time.Minute, room: 12,
		doom: map[string]time.Time{}}
	w.config = testConfig(os.Getenv("FOREWARM_TEST_KUBERNETES_USER"))
	w.config.Namespace = namespace
	w.Cluster = w.newCluster(t)
	require.Eventually(t, func() bool { // the server's own memory of rights is a moment old
		_, err := w.List(context.Background(), "dep")
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	for _, by := range adjust {
		by(&w.config)
	}
	w.Cluster = w.newCluster(t)
	return w
}

func TestContractOnARealAPIServer(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		w := realWorld(t)
		s := w.suiteSubject(t)
		s.TimeOutCreate, s.TimeOutDelete, s.TruncateList, s.FailCreate = nil, nil, nil, nil
		s.FailDelete, s.IgnoreDelete, s.Throttle, s.LagList = nil, nil, nil, nil
		s.Histories = 5
		return s
	}})
}

// The real words of the quota are what the adapter reads.
func TestARealQuota(t *testing.T) {
	t.Parallel()
	w := realWorld(t)
	hard := corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("4")}
	made, err := w.core.ResourceQuotas(w.scope).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-quota"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	made.Status = corev1.ResourceQuotaStatus{Hard: hard,
		Used: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("0")}}
	_, err = w.core.ResourceQuotas(w.scope).UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	var typed *provisioners.Error
	tries := 0
	require.Eventually(t, func() bool { // the server's own memory of quotas is a moment old
		tries++
		_, err := w.Create(t.Context(), fmt.Sprint("token-", tries), w.testSpec())
		return errors.As(err, &typed)
	}, time.Minute, time.Second)
	require.Equal(t, provisioners.KindQuota, typed.Kind, "%v", typed)
	require.Equal(t, "gpu-quota", typed.Scope)
}

// What the API server checks of a placeholder, it finds right, with everything
// that an offer can ask for.
func TestARealPlaceholder(t *testing.T) {
	t.Parallel()
	w := realWorld(t, func(c *kubernetes.Config) {
		offer := &c.Offers[0]
		offer.NodeSelector = map[string]string{"pool": "gpu"}
		offer.NodeAffinity = []kubernetes.Match{{Key: "zone", Operator: "In", Values: []string{"a", "b"}}}
		offer.Tolerations = []kubernetes.Toleration{{Key: "spot", Operator: "Exists", Effect: "NoSchedule"}}
		offer.Requests = map[string]string{"cpu": "90", "memory": "900Gi"}
		c.Probe, c.ImagePullSecrets, c.CordonOnDelete = kubernetes.ProbeLogs, []string{"registry"}, true
	})
	spec := w.testSpec()
	spec.ExpiresAt = w.clock.Now().Add(time.Hour)
	made, err := w.Create(t.Context(), "token", spec)
	require.NoError(t, err)
	require.NoError(t, w.Renew(t.Context(), made.ID, w.clock.Now().Add(2*time.Hour)))
	pod, err := w.core.Pods(w.scope).Get(t.Context(), podName(made.ID), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, int32(-5), *pod.Spec.Priority)
	require.Equal(t, fmt.Sprint(w.clock.Now().Add(2*time.Hour+time.Second-1).Unix()),
		pod.Annotations["forewarm.dev/expires-at"])
	require.NoError(t, w.Delete(t.Context(), made.ID))
	w.requirePhase(t, made.ID, provisioners.Terminated)
}

func TestARealRefusal(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		adjust func(*kubernetes.Config)
		kind   provisioners.Kind
	}{
		"no namespace": {func(c *kubernetes.Config) { c.Namespace = "nowhere" },
			provisioners.KindDenied}, // no rights there
		"no PriorityClass": {func(c *kubernetes.Config) { c.PriorityClass = "none" }, provisioners.KindDenied},
		"invalid": {func(c *kubernetes.Config) {
			c.Offers[0].Tolerations = []kubernetes.Toleration{{Key: "a", Effect: "Sometimes"}}
		}, provisioners.KindBadSpec},
		"no such request": {func(c *kubernetes.Config) { c.Offers[0].ProvisioningRequest = class },
			provisioners.KindBadSpec},
	} {
		w := realWorld(t, test.adjust)
		_, err := w.Create(t.Context(), "token", w.testSpec())
		var typed *provisioners.Error
		require.ErrorAs(t, err, &typed, what)
		require.Equal(t, test.kind, typed.Kind, "%s: %v", what, err)
		require.Empty(t, w.listPods(), what)
	}
}

func TestRealCordon(t *testing.T) {
	t.Parallel()
	w := realWorld(t, func(c *kubernetes.Config) { c.CordonOnDelete = true })
	machine := w.createRunning(t)
	require.NoError(t, w.Delete(t.Context(), machine.ID))
	node, err := w.core.Nodes().Get(t.Context(), nodeOf(machine), metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, node.Spec.Unschedulable)
}

func TestRealWorkTakesThePlaceOfItsPlaceholder(t *testing.T) {
	t.Parallel()
	w := realWorld(t)
	before := w.createRunning(t)
	w.createPod(w.scope, "training", 8, func(pod *corev1.Pod) {
		userPod("nod_1", nodeOf(before))(pod)
		pod.Spec.Priority = nil
	})
	w.runControllers()
	require.Equal(t, before, w.requirePhase(t, before.ID, provisioners.Running))
	w.advanceClock(10 * time.Second)
	require.Len(t, w.listPods(), 1)
	require.Equal(t, before, w.requirePhase(t, before.ID, provisioners.Running))
	require.Equal(t, []provisioners.Instance{before}, w.listInstances(t))
}
