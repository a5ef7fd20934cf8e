//go:build clouds

package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

// plainWorld is a cluster with users, and an observer of it.
type plainWorld struct {
	*world
	*kubernetes.Observed
	namespace string // of its users
	submitted int
}

const (
	keptFor   = 6 * time.Minute
	emptyFor  = 3 * time.Minute
	plainRoom = 4
)

// newPlainWorld has no nodes yet, and place for four of 8 GPUs.
func newPlainWorld(t *testing.T, adjust ...func(*kubernetes.Config)) *plainWorld {
	t.Helper()
	w := &plainWorld{world: newWorld(t), namespace: "team"}
	w.observe(t, adjust...)
	return w
}

// observe turns the world into one with users.
func (w *plainWorld) observe(t *testing.T, adjust ...func(*kubernetes.Config)) {
	t.Helper()
	w.plain, w.room = newPlainHands(), plainRoom
	w.plain.idle = emptyFor
	w.config.Use, w.config.KeepFor, w.config.WarmWith = kubernetes.UseObserved, keptFor, kubernetes.WarmPlaceholder
	w.config.Offers = slices.Clone(w.config.Offers)
	for i := range w.config.Offers {
		w.config.Offers[i].Requests = map[string]string{"cpu": "90"}
	}
	for _, by := range adjust {
		by(&w.config)
	}
	w.open(t)
}

func (w *plainWorld) open(t *testing.T) provisioners.Provisioner {
	t.Helper()
	var err error
	w.Observed, err = kubernetes.NewObserved(w.config, w.clock)
	require.NoError(t, err)
	return w.Observed
}

// submit makes the pods of a user, and lets placeholders make way for them. They go by the
// handle that is returned.
func (w *plainWorld) submit(t *testing.T, p provisionertest.PlainWork) string {
	t.Helper()
	w.submitted++
	handle := fmt.Sprint("work-", w.submitted)
	for part := range p.Nodes {
		w.createPod(w.namespace, fmt.Sprint(handle, "-", part), int64(p.GPUs), func(pod *corev1.Pod) {
			requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10")}
			limits := corev1.ResourceList{}
			if p.GPUs > 0 {
				amount := *resource.NewQuantity(int64(p.GPUs), resource.DecimalSI)
				requests[w.gpu()], limits[w.gpu()] = amount, amount
			}
			pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
			pod.Labels["work"] = handle
			if p.Nodes > 1 {
				pod.Labels["scheduling.x-k8s.io/pod-group"] = handle
			}
		})
	}
	w.runControllers()
	return handle
}

func (w *plainWorld) podsOf(t *testing.T, handle string) []corev1.Pod {
	t.Helper()
	list, err := w.core.Pods(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "work=" + handle})
	require.NoError(t, err)
	return list.Items
}

// finish ends the pods as their programs would, and withdraws those that have not begun.
func (w *plainWorld) finish(t *testing.T, handle string) {
	t.Helper()
	for _, pod := range w.podsOf(t, handle) {
		if pod.Status.Phase != corev1.PodRunning {
			w.killPod(pod)
			continue
		}
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(w.clock.Now())}}
		_, err := w.core.Pods(pod.Namespace).UpdateStatus(t.Context(), &pod, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

func (w *plainWorld) runs(t *testing.T, handle string) bool {
	pods := w.podsOf(t, handle)
	return len(pods) > 0 && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil
	})
}

// forget removes what has finished, and the server's memory of changes.
func (w *plainWorld) forget(t *testing.T) {
	for _, pod := range w.listPods() {
		if hasFinished(pod) {
			err := w.core.Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{})
			require.True(t, err == nil || apierrors.IsNotFound(err))
		}
	}
	w.server.Forget()
}

// observerSubject is the observer for its suite.
func (w *plainWorld) observerSubject(t *testing.T) provisionertest.ObserverSubject {
	return provisionertest.ObserverSubject{
		Subject: provisionertest.Subject{
			Provisioner: w.Observed, Reopen: w.open, Spec: ofA100, Machines: plainRoom, Advance: w.advanceSlowly,
			BootWithin: 4 * time.Minute, GoneWithin: time.Minute,
			Throttle: func(calls int) {
				w.server.Heal()
				if calls > 0 {
					w.server.Inject(apitest.Fault{Times: calls, Refuse: tooMany()})
				}
			},
		},
		SuspendWithin: keptFor + emptyFor + time.Minute,
		Submit:        func(p provisionertest.PlainWork) string { return w.submit(t, p) },
		Finish:        func(handle string) { w.finish(t, handle) },
		Runs:          func(handle string) bool { return w.runs(t, handle) },
		Forget:        func() { w.forget(t) },
		TruncateQueue: func() { w.server.Inject(apitest.Fault{On: usesOf("list", "pods"), Lose: true}) },
		BreakBoot:     func() { w.room = 0 },
		Beats:         func() int { return w.server.CountUses(apitest.Use{Verb: "create", Resource: "pods"}) },
		MostBeats:     1, NodesCome: true, GangParts: true,
	}
}

func TestObserverConformance(t *testing.T) {
	t.Parallel()
	provisionertest.RunObserver(t, provisionertest.ObserverHarness{
		New: func(t *testing.T) provisionertest.ObserverSubject { return newPlainWorld(t).observerSubject(t) },
	})
}

// The suite of every provisioner, on a cluster without nodes, and on one that has idle
// ones.
func TestObservedContract(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string]int{"nodes come": 0, "nodes are idle": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
				w := newPlainWorld(t, func(c *kubernetes.Config) { c.KeepFor = 24 * time.Hour }) // this suite does not keep
				w.plain.idle, w.room = 0, 12
				for range nodes {
					w.addPlainNode()
				}
				return w.contractSubject(t)
			}})
		})
	}
}

func (w *plainWorld) contractSubject(t *testing.T) provisionertest.Subject {
	s := w.suiteSubject(t)
	s.Provisioner, s.Reopen, s.Now = w.Observed, w.open, nil
	s.IgnoreDelete = nil // a node is let go when the record says so
	s.Reclaim = func(id string) {
		got, err := w.Observed.Get(t.Context(), id)
		if err != nil || got.Phase != provisioners.Running || w.hasForeignWork(got.Address) {
			return
		}
		w.taintNode(got.Address, "aws-node-termination-handler/spot-itn")
		if _, doomed := w.doom[got.Address]; !doomed {
			w.doom[got.Address] = w.clock.Now().Add(2 * time.Minute)
		}
	}
	s.RunOut = func() { w.runOutPlain(t) }
	return s
}

// hasForeignWork reports whether somebody else's pod is on the node.
func (w *plainWorld) hasForeignWork(node string) bool {
	return slices.ContainsFunc(w.listPods(), func(pod corev1.Pod) bool {
		return pod.Spec.NodeName == node && pod.Labels["forewarm.dev/role"] != "placeholder"
	})
}

// runOutPlain has the autoscaler say no to somebody's keeping, and takes the idle nodes.
func (w *plainWorld) runOutPlain(t *testing.T) {
	w.room = 0
	for _, node := range w.listNodes() {
		w.updateNode(node.Name, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	}
	spec := ofA100
	spec.Owner, spec.NodeID = "deployment-z", "nod_z"
	made, err := w.Observed.Create(t.Context(), "token-z", spec)
	require.NoError(t, err)
	w.advanceClock(2 * time.Minute)
	got, err := w.Observed.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.Contains(t, got.Notice.Message, "max node group size")
}

// warmNode is a keeping that has its node.
func (w *plainWorld) warmNode(t *testing.T, token string) provisioners.Instance {
	t.Helper()
	made := w.askNode(t, token)
	for range 10 {
		got, err := w.Observed.Get(t.Context(), made.ID)
		require.NoError(t, err)
		if got.Phase == provisioners.Running {
			w.runControllers()
			return got
		}
		w.advanceClock(30 * time.Second)
	}
	require.FailNow(t, "the node did not come")
	return made
}

func (w *plainWorld) askNode(t *testing.T, token string) provisioners.Instance {
	t.Helper()
	spec := ofA100
	spec.Owner, spec.NodeID = "dep", "nod_"+strings.ToLower(token)
	made, err := w.Observed.Create(t.Context(), token, spec)
	require.NoError(t, err)
	return made
}

func (w *plainWorld) awaitBoot() {
	w.runControllers()
	w.advanceClock(w.boot)
}

func (w *plainWorld) look(t *testing.T, since provisioners.Mark) provisioners.Observation {
	t.Helper()
	seen, err := w.Observe(t.Context(), since)
	require.NoError(t, err)
	require.True(t, seen.Complete, seen.Gap)
	return seen
}

func (w *plainWorld) keep(t *testing.T, ids ...string) {
	t.Helper()
	require.NoError(t, w.Keep(t.Context(), ids))
}

// placeholders are those that are there and not on their way out.
func (w *plainWorld) placeholders() []corev1.Pod {
	return slices.DeleteFunc(w.listPods(), func(pod corev1.Pod) bool {
		return pod.Labels["forewarm.dev/role"] != "placeholder" || pod.DeletionTimestamp != nil || hasFinished(pod)
	})
}
