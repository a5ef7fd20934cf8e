//go:build clouds

package kubernetes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// world is a cluster with an adapter to it.
type world struct {
	*kubernetes.Cluster
	hands
	server *apitest.Server
	config kubernetes.Config
	url    string
	clock  *clock.Manual
}

func newWorld(t *testing.T, adjust ...func(*kubernetes.Config)) *world {
	t.Helper()
	w := &world{clock: clock.NewManual(start)}
	w.server = apitest.New(w.clock)
	http := httptest.NewServer(w.server)
	t.Cleanup(http.Close)
	core, err := corev1client.NewForConfig(&rest.Config{
		Host: http.URL, QPS: -1, UserAgent: "hands", ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	require.NoError(t, err)
	w.url = http.URL
	open, err := dynamic.NewForConfig(&rest.Config{Host: http.URL, QPS: -1, UserAgent: "hands"})
	require.NoError(t, err)
	w.hands = hands{t: t, core: core, jobs: open.Resource(jobs),
		clock: w.clock, boot: time.Minute, room: 12, doom: map[string]time.Time{}}
	w.config = testConfig(writeKubeconfig(t, http.URL))
	for _, by := range adjust {
		by(&w.config)
	}
	w.Cluster = w.newCluster(t)
	return w
}

func (w *world) newCluster(t *testing.T) *kubernetes.Cluster {
	t.Helper()
	cluster, err := kubernetes.New(w.config, w.clock)
	require.NoError(t, err)
	return cluster
}

func (w *world) advanceClock(d time.Duration) {
	w.clock.Advance(d)
	w.runControllers()
}

func writeKubeconfig(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
users: [{name: test, user: {token: t}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`, url)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func testConfig(kubeconfig string) kubernetes.Config {
	return kubernetes.Config{
		Kubeconfig: kubeconfig,
		Offers: []kubernetes.Offer{
			{Type: "a100-8", Region: "r1", Model: "a100-80g", GPUs: 8, MemoryMiB: 81_920, Interruptible: true,
				Notice: 2 * time.Minute},
			{Type: "l4-2", Region: "r1", Model: "l4", GPUs: 2, MemoryMiB: 24_576},
		},
	}
}

var ofA100 = provisioners.Spec{Type: "a100-8", Region: "r1"}

// suiteSubject is the adapter with every fault that an API server can have.
func (w *world) suiteSubject(t *testing.T) provisionertest.Subject {
	const deleting, update = "delete", "update"
	endings := []apitest.Use{{Verb: update, Resource: "configmaps"}, {Verb: deleting, Resource: "pods"}}
	return provisionertest.Subject{
		Provisioner: w.Cluster,
		Reopen:      func(t *testing.T) provisioners.Provisioner { return w.newCluster(t) },
		Spec:        ofA100, OtherSpec: provisioners.Spec{Type: "l4-2", Region: "r1"},
		Machines: 8, Advance: w.advanceClock, Now: w.clock.Now,
		BootWithin: 10 * time.Minute, GoneWithin: 5 * time.Minute,
		TimeOutCreate: func() { w.server.Inject(apitest.Fault{On: usesOf("create", "pods"), Cut: true}) },
		TimeOutDelete: func() { w.server.Inject(apitest.Fault{On: usesOf(deleting, "pods"), Cut: true}) },
		TruncateList:  func() { w.server.Inject(apitest.Fault{On: usesOf("list", "configmaps"), Lose: true}) },
		FailCreate: func() {
			w.server.Inject(apitest.Fault{On: usesOf("create", "configmaps"), Refuse: serverUnavailable()})
		},
		FailDelete:   func() { w.server.Inject(apitest.Fault{On: endings, Refuse: serverUnavailable()}) },
		IgnoreDelete: func() { w.server.Inject(apitest.Fault{On: usesOf(deleting, "pods"), Ignore: true}) },
		Throttle: func(calls int) {
			w.server.Heal()
			if calls > 0 {
				w.server.Inject(apitest.Fault{Times: calls, Refuse: tooMany()})
			}
		},
		LagList: w.server.Lag,
		Foreign: func() func() bool { return w.createForeignPod(t) },
		Reclaim: func(id string) {
			parts := strings.Split(id, "/")
			w.reclaimSpot(parts[0], parts[1])
		},
		RunOut: func() { w.runOut(t) },
	}
}

func usesOf(verb, resource string) []apitest.Use {
	return []apitest.Use{{Verb: verb, Resource: resource}}
}

func serverUnavailable() *apitest.Refusal {
	return &apitest.Refusal{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: "etcd has no leader"}
}

func tooMany() *apitest.Refusal {
	return &apitest.Refusal{Code: http.StatusTooManyRequests, Message: "Too many requests, please try again later.",
		RetryAfter: 7, Plain: true}
}

// createForeignPod is somebody's own pod with GPUs in our namespace.
func (w *world) createForeignPod(t *testing.T) func() bool {
	namespace := w.config.WithDefaults().Namespace
	uid := w.createPod(namespace, "training", 8, nil)
	return func() bool {
		pod, err := w.core.Pods(namespace).Get(t.Context(), "training", metav1.GetOptions{})
		return err == nil && pod.UID == uid && pod.DeletionTimestamp == nil
	}
}

// runOut has the autoscaler say no to somebody's machine.
func (w *world) runOut(t *testing.T) {
	w.room = 0
	spec := ofA100
	spec.Owner, spec.NodeID = "deployment-z", "nod_z"
	made, err := w.Create(t.Context(), "token-z", spec)
	require.NoError(t, err)
	w.advanceClock(2 * time.Minute)
	got, err := w.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.Contains(t, got.Notice.Message, "max node group size")
}

func TestContract(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		w := newWorld(t)
		return w.suiteSubject(t)
	}})
}

// nodeOf is the node that an address names.
func nodeOf(i provisioners.Instance) string {
	at, err := access.Parse(i.Address)
	if err != nil {
		return err.Error()
	}
	return at.Host
}
