//go:build clouds

package kubernetes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

// A mark says of which cluster it is, although its version may be reached there as well.
func TestAMarkOfAnotherCluster(t *testing.T) {
	t.Parallel()
	one, other := newPlainWorld(t), newPlainWorld(t)
	of := one.look(t, "").Mark
	for range 20 {
		other.addPlainNode()
	}
	_, err := other.Observe(t.Context(), of)
	require.ErrorIs(t, err, provisioners.ErrForeignMark)
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
	one.look(t, of)
}

// Who may not read that namespace does not know which cluster it is, and a mark that does
// not say it is good.
func TestAMarkWithoutACluster(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	known := w.look(t, "").Mark
	w.server.Inject(apitest.Fault{On: usesOf("get", "namespaces"), Times: 2, Refuse: denyFault("", "").Refuse})
	unknown := w.look(t, known).Mark
	require.NotEqual(t, strings.Count(string(known), "-"), strings.Count(string(unknown), "-"))
	w.look(t, unknown)
	w.look(t, unknown)
}

// The time of a look is the server's, not ours.
func TestTheTimeOfALook(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.server.SetClockAhead(-7 * time.Minute)
	require.Equal(t, w.clock.Now().Add(-7*time.Minute).Truncate(time.Second), w.look(t, "").At)
}

// holdList has an observer whose lists of pods wait until before has returned. after is
// called with each watch that was told to its end.
func (w *plainWorld) holdList(t *testing.T, before func(), after func()) {
	t.Helper()
	target, err := url.Parse(w.url)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		watches := r.URL.Query().Get("watch") != ""
		if strings.HasSuffix(r.URL.Path, "/pods") && !watches {
			before()
		}
		forward.ServeHTTP(rw, r)
		if watches {
			after()
		}
	}))
	t.Cleanup(proxy.Close)
	w.config.Kubeconfig = writeKubeconfig(t, proxy.URL)
	w.open(t)
}

// A pod that goes after the watch was over, and before the list, is told all the same.
func TestAPodThatGoesBeforeTheList(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.addPlainNode()
	handle := w.submit(t, provisionertest.PlainWork{GPUs: 1, Nodes: 1})
	pod := w.podsOf(t, handle)[0]
	mark := w.look(t, "").Mark
	told := make(chan struct{})
	w.holdList(t, sync.OnceFunc(func() { <-told; w.killPod(pod) }), sync.OnceFunc(func() { close(told) }))
	seen := w.look(t, mark)
	require.Len(t, seen.Work, 1)
	require.False(t, seen.Work[0].EndedAt.IsZero())
	require.Empty(t, w.look(t, seen.Mark).Work)
}

// What a watch tells is read while the list is: a server ends the watch of a client that
// lets it wait.
func TestAWatchIsReadWhileTheListIs(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	mark := w.look(t, "").Mark
	note := strings.Repeat("x", 1<<20)
	w.server.FillPods(12, func(i int) any { // more than what lies between a server and its client
		pod := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("pod-", i)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{container("x", "1", "1")}}}
		pod.Annotations = map[string]string{"note": note}
		return pod
	})
	told := make(chan struct{})
	w.holdList(t, func() { <-told }, sync.OnceFunc(func() { close(told) }))
	require.Len(t, w.look(t, mark).Work, 12)
}

// Where the events of all namespaces may not be read, those of the pods' namespaces are.
func TestEventsOfOneNamespace(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.submit(t, wholeNode)
	w.createPod("secret", "other", nodeGPUs, nil)
	w.runControllers()
	refuse := func(namespace string) {
		w.server.Inject(apitest.Fault{On: usesOf("list", "events"), In: namespace, Times: 100,
			Refuse: denyFault("", "").Refuse})
	}
	refuse("*")
	for _, work := range w.look(t, "").Work {
		require.Equal(t, provisioners.WaitBoot, work.Waiting)
	}
	refuse("secret")
	for _, work := range w.lookPast(t, "", "namespaces secret may not be read").Work {
		require.Equal(t, work.Namespace == "team", work.Waiting == provisioners.WaitBoot)
	}
}
