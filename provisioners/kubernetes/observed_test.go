//go:build clouds

package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

var wholeNode = provisionertest.PlainWork{GPUs: nodeGPUs, Nodes: 1}

func (w *plainWorld) requireKept(t *testing.T, id string, want provisioners.NodeState) provisioners.ObservedNode {
	t.Helper()
	for _, n := range w.look(t, "").Nodes {
		if n.InstanceID == id {
			require.Equal(t, want, n.State, "%+v", n)
			return n
		}
	}
	require.FailNow(t, "no node is kept by "+id)
	return provisioners.ObservedNode{}
}

// A pod that takes a placeholder's place has a warm start, and the placeholder comes back
// when the pod is over, not before.
func TestWorkPreemptsThePlaceholder(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	kept := w.warmNode(t, "a")
	require.Len(t, w.placeholders(), 1)
	handle := w.submit(t, wholeNode)
	require.True(t, w.runs(t, handle))
	seen := w.look(t, "")
	require.Len(t, seen.Work, 1)
	require.Equal(t, []provisioners.WorkNode{{Name: kept.Address, GPUs: nodeGPUs}}, seen.Work[0].Nodes)
	wait, started := seen.Work[0].Wait()
	require.True(t, started)
	require.LessOrEqual(t, wait, 2*time.Second)
	for range 20 {
		w.keep(t, kept.ID)
		w.advanceClock(time.Minute)
	}
	require.Empty(t, w.placeholders(), "a placeholder was made beside the work that took its place")
	require.Len(t, w.listNodes(), 1, "a node was booted beside the work")
	w.requireKept(t, kept.ID, provisioners.NodeTaken)

	w.finish(t, handle)
	w.keep(t, kept.ID)
	w.advanceClock(time.Second)
	require.Len(t, w.placeholders(), 1)
	require.Equal(t, kept.Address, w.placeholders()[0].Spec.NodeName)
	w.requireKept(t, kept.ID, provisioners.NodeIdle)
	got, err := w.Observed.Get(t.Context(), kept.ID)
	require.NoError(t, err)
	require.Equal(t, kept, got)
}

// What every node runs takes nothing, whatever it asks for.
func TestADaemonTakesNothing(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	kept := w.warmNode(t, "a")
	w.createPod("kube-system", "dcgm", 1, func(pod *corev1.Pod) {
		pod.Spec.NodeName = kept.Address
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d",
			Controller: new(true)}}
	})
	w.runControllers()
	require.Empty(t, w.look(t, "").Work)
	require.Zero(t, w.requireKept(t, kept.ID, provisioners.NodeIdle).GPUsTaken)
}

// A pod without GPUs takes a node only where no pod of the offer's shape fits beside it.
func TestAPodWithoutGPUs(t *testing.T) {
	t.Parallel()
	for cpu, want := range map[string]provisioners.NodeState{
		"100m": provisioners.NodeIdle, "10": provisioners.NodeTaken,
	} {
		w := newPlainWorld(t)
		kept := w.warmNode(t, "a")
		w.createPod("kube-system", "web", 0, func(pod *corev1.Pod) {
			pod.Spec.NodeName = kept.Address
			pod.Spec.Containers[0].Resources.Requests = resources(corev1.ResourceCPU, cpu)
		})
		w.runControllers()
		require.Empty(t, w.look(t, "").Work)
		require.Zero(t, w.requireKept(t, kept.ID, want).GPUsTaken)
	}
}

func TestWaitingForABoot(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	mark := w.look(t, "").Mark
	w.submit(t, wholeNode)
	seen := w.look(t, mark)
	require.Len(t, seen.Work, 1)
	require.Equal(t, provisioners.WaitBoot, seen.Work[0].Waiting)
	require.Empty(t, seen.Work[0].Nodes)
	w.advanceClock(w.boot)
	started := w.look(t, seen.Mark).Work[0]
	require.Equal(t, seen.Work[0].ID, started.ID)
	wait, began := started.Wait()
	require.True(t, began)
	require.GreaterOrEqual(t, wait, w.boot)

	w.room = 1
	w.submit(t, wholeNode)
	for _, work := range w.look(t, "").Work {
		if work.StartedAt.IsZero() {
			require.Equal(t, provisioners.WaitResources, work.Waiting)
		}
	}
}

// The part of a gang that has its warm node waits for the other's boot, and has not begun.
func TestAGangWithAColdNode(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	kept := w.warmNode(t, "a")
	w.submit(t, provisionertest.PlainWork{GPUs: nodeGPUs, Nodes: 2})
	seen := w.look(t, "")
	require.Len(t, seen.Work, 2)
	placed := 0
	for _, work := range seen.Work {
		require.Equal(t, provisioners.WaitBoot, work.Waiting)
		require.Zero(t, work.StartedAt)
		placed += len(work.Nodes)
	}
	require.Equal(t, 1, placed)
	w.requireKept(t, kept.ID, provisioners.NodeTaken)
	w.advanceClock(w.boot)
	seen = w.look(t, "")
	for _, work := range seen.Work {
		wait, started := work.Wait()
		require.True(t, started)
		require.GreaterOrEqual(t, wait, w.boot)
	}
	require.Equal(t, seen.Work[0].StartedAt, seen.Work[1].StartedAt)
}

func TestANodeThatNeverComes(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t, func(c *kubernetes.Config) { c.PendingTimeout = 5 * time.Minute })
	w.boot = time.Hour
	made := w.askNode(t, "a")
	w.advanceClock(4 * time.Minute)
	require.NoError(t, w.Keep(t.Context(), []string{made.ID}))
	w.advanceClock(time.Minute)
	got, err := w.Observed.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.Contains(t, got.Notice.Message, "no node in 5m0s")
	require.Empty(t, w.placeholders(), "it still asks for a node")
	_, err = w.Observed.Create(t.Context(), "b", made2spec())
	require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(err))
}

func made2spec() provisioners.Spec {
	spec := ofA100
	spec.Owner, spec.NodeID = "dep", "nod_b"
	return spec
}

func TestTheKeptNodeGoes(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	kept := w.warmNode(t, "a")
	require.NoError(t, w.core.Nodes().Delete(t.Context(), kept.Address, metav1.DeleteOptions{}))
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(w.Keep(t.Context(), []string{kept.ID})))
	w.advanceClock(time.Second)
	got, err := w.Observed.Get(t.Context(), kept.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.Empty(t, w.placeholders())
	require.Empty(t, w.look(t, "").Nodes)
}

func TestAPlaceholderDeletedByHand(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	kept := w.warmNode(t, "a")
	w.killPod(w.placeholders()[0])
	w.requireKept(t, kept.ID, provisioners.NodeIdle)
	w.keep(t, kept.ID)
	w.advanceClock(time.Second)
	require.Len(t, w.placeholders(), 1)
	require.Equal(t, kept.Address, w.placeholders()[0].Spec.NodeName)

	booting := w.askNode(t, "b")
	w.killPod(w.placeholders()[1])
	w.keep(t, booting.ID)
	require.Len(t, w.placeholders(), 2, "nothing asks for its node")
}

// Another installation's placeholders are no work, and its nodes not ours to keep.
func TestAnotherInstallation(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"forewarm", "other"} {
		w := newPlainWorld(t, func(c *kubernetes.Config) { c.PlaceholderNamespaces = []string{"other"} })
		theirs := *w
		theirs.config.Namespace = namespace
		theirs.open(t)
		spec := ofA100
		spec.Owner, spec.NodeID = "deployment-b", "nod_1"
		made, err := theirs.Observed.Create(t.Context(), "theirs", spec)
		require.NoError(t, err)
		w.awaitBoot()
		there, err := theirs.Observed.Get(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, provisioners.Running, there.Phase)

		ours := w.askNode(t, "a")
		require.Equal(t, provisioners.Booting, ours.Phase, "a node was taken that another one keeps")
		seen := w.look(t, "")
		require.Empty(t, seen.Work)
		require.Equal(t, provisioners.NodeIdle, seen.Nodes[1].State)
		require.Equal(t, namespace == "forewarm", seen.Nodes[1].InstanceID == made.ID)
		require.NoError(t, w.Observed.Delete(t.Context(), ours.ID))
		require.Len(t, w.placeholders(), 1, "theirs was removed")
	}
}

// Processes that choose at the same moment choose different nodes.
func TestNodesAreTakenOnce(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	const nodes = 6
	for range nodes {
		w.addPlainNode()
	}
	made := make([]provisioners.Instance, nodes)
	errs := make([]error, nodes)
	var group sync.WaitGroup
	for i := range nodes {
		group.Go(func() {
			spec := ofA100
			spec.Owner, spec.NodeID = "dep", fmt.Sprint("nod_", i)
			made[i], errs[i] = w.Observed.Create(t.Context(), fmt.Sprint("token-", i), spec)
		})
	}
	group.Wait()
	taken := map[string]bool{}
	for i := range nodes {
		require.NoError(t, errs[i])
		require.Equal(t, provisioners.Running, made[i].Phase)
		require.False(t, taken[made[i].Address], "%s is kept twice", made[i].Address)
		taken[made[i].Address] = true
	}
}

// A placeholder that the scheduler puts on a node which is in keeping is made again, to
// avoid that node.
func TestAPlaceholderOnAKeptNode(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	second := w.askNode(t, "b") // knows of no node to avoid
	name := w.addPlainNode()
	first := w.askNode(t, "a")
	require.Equal(t, name, first.Address)
	for _, pod := range w.placeholders() {
		if pod.Name == podName(first.ID) {
			w.killPod(pod)
		}
	}
	w.runControllers()
	require.Equal(t, name, w.placeholders()[0].Spec.NodeName)
	got, err := w.Observed.Get(t.Context(), second.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Booting, got.Phase)
	w.advanceClock(2 * time.Second)
	w.keep(t, first.ID)
	w.runControllers()
	w.keep(t, first.ID, second.ID)
	w.awaitBoot()
	got, err = w.Observed.Get(t.Context(), second.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
	require.NotEqual(t, name, got.Address)
	w.requireKept(t, first.ID, provisioners.NodeIdle)
}

// Of what users write nothing is told but the namespace, in which they write it.
func TestNoWordOfUsersIsTold(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.createPod("team", "secret-project", 1, func(pod *corev1.Pod) {
		pod.Labels["customer"] = "secret-customer"
		pod.Annotations = map[string]string{"note": "secret-note", "scheduling.k8s.io/group-name": "secret-group"}
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "secret-token"}}
		pod.Spec.ServiceAccountName = "secret-account"
	})
	w.runControllers()
	seen := w.look(t, "")
	require.Len(t, seen.Work, 1)
	text, err := json.Marshal(seen)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	require.Contains(t, string(text), "team")
}

// A large cluster is read in pages.
func TestManyPods(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	name := w.addPlainNode()
	const pods = 5000
	w.server.FillPods(pods, func(i int) any {
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("pod-%05d", i)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x",
				Resources: corev1.ResourceRequirements{Requests: resources(gpus, "1")}}}},
		}
		if i < nodeGPUs {
			pod.Spec.NodeName = name
		}
		return pod
	})
	seen := w.look(t, "")
	require.Len(t, seen.Work, pods)
	require.Equal(t, nodeGPUs, seen.Nodes[0].GPUsTaken)
	again := w.look(t, seen.Mark)
	require.Len(t, again.Work, pods)
}

// A control plane that is gone keeps nothing: the placeholder ends itself, and so does
// one that comes to its node only after that.
func TestNobodyKeeps(t *testing.T) {
	t.Parallel()
	for _, boot := range []time.Duration{15 * time.Minute, 40 * time.Minute} {
		w := newPlainWorld(t)
		w.boot = boot
		w.askNode(t, "a")
		w.awaitBoot()
		early := boot < 20*time.Minute
		require.Equal(t, early, len(w.listNodes()) == 1)
		require.Equal(t, early, len(w.placeholders()) == 1)
		w.advanceSlowly(20*time.Minute + keptFor + emptyFor)
		require.Empty(t, w.placeholders())
		require.Empty(t, w.listNodes())
	}
}

// A Create that was cut off between its placeholder and its record goes on where it was,
// although the choice would be another one now.
func TestACreateThatIsRepeated(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	first := w.addPlainNode()
	w.server.Inject(apitest.Fault{On: usesOf("create", "pods"), Cut: true})
	_, err := w.Observed.Create(t.Context(), "b", made2spec())
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err))
	w.clock.Advance(time.Minute)
	second := w.addPlainNode() // which is younger, and would be chosen
	made, err := w.Observed.Create(t.Context(), "b", made2spec())
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, made.Phase)
	require.Equal(t, first, made.Address)
	w.runControllers()
	require.Len(t, w.placeholders(), 1)
	require.Equal(t, first, w.placeholders()[0].Spec.NodeName)
	require.Equal(t, second, w.askNode(t, "a").Address, "its claim was left behind")
}
