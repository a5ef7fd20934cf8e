//go:build clouds

package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
)

// userPod is the pod of whoever holds the allocation.
func userPod(node, hostname string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		high := int32(100)
		pod.Spec.Priority, pod.Spec.NodeSelector = &high, map[string]string{corev1.LabelHostname: hostname}
		if node != "" {
			pod.Labels["forewarm.dev/node"] = node
		}
	}
}

func TestWorkTakesThePlaceOfItsPlaceholder(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"forewarm", "team"} {
		w := newWorld(t, func(c *kubernetes.Config) {
			if namespace != c.Namespace {
				c.WorkNamespaces = []string{"*"}
			}
		})
		before := w.createRunning(t)
		w.createPod(namespace, "training", 8, userPod("nod_1", nodeOf(before)))
		w.runControllers() // the placeholder is told to go
		require.Equal(t, before, w.requirePhase(t, before.ID, provisioners.Running))
		require.Equal(t, []provisioners.Instance{before}, w.listInstances(t))
		w.advanceClock(10 * time.Second) // it is gone, and the work runs
		require.Len(t, w.listPods(), 1)
		require.Equal(t, before, w.requirePhase(t, before.ID, provisioners.Running))
		require.Equal(t, []provisioners.Instance{before}, w.listInstances(t))
		require.NoError(t, w.Renew(t.Context(), before.ID, start.Add(time.Hour)), "nothing runs out")
		require.Equal(t, before.ID, w.createInstance(t).ID)

		pod, err := w.core.Pods(namespace).Get(t.Context(), "training", metav1.GetOptions{})
		require.NoError(t, err)
		pod.Status.Phase = corev1.PodSucceeded
		_, err = w.core.Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Equal(t, provisioners.Terminated, w.listInstances(t)[0].Phase, "nothing holds the node any more")
		w.requirePhase(t, before.ID, provisioners.Terminated)
		require.Equal(t, provisioners.KindNotFound,
			provisioners.KindOf(w.Renew(t.Context(), before.ID, start.Add(time.Hour))))
	}
}

func TestWorkOfNobodyWeKnowEndsTheMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.createRunning(t)
	w.createPod("forewarm", "training", 8, userPod("", nodeOf(before)))
	w.runControllers()
	w.requirePhase(t, before.ID, provisioners.Terminating)
	w.advanceClock(10 * time.Second)
	over := w.requirePhase(t, before.ID, provisioners.Terminated)
	require.Equal(t, w.clock.Now().Add(-5*time.Second), over.EndedAt)
}

// Delete ends our hold on the node. The work is its owner's to end.
func TestDeleteLeavesTheWorkAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.createRunning(t)
	w.createPod("forewarm", "training", 8, userPod("nod_1", nodeOf(before)))
	w.runControllers()
	w.advanceClock(10 * time.Second)
	require.NoError(t, w.Delete(t.Context(), before.ID))
	w.requirePhase(t, before.ID, provisioners.Terminated)
	require.Len(t, w.listPods(), 1)
}

func TestTheNodeOfTheWorkIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.createRunning(t)
	w.createPod("forewarm", "training", 8, userPod("nod_1", nodeOf(before)))
	w.runControllers()
	w.advanceClock(10 * time.Second)
	require.NoError(t, w.core.Nodes().Delete(t.Context(), nodeOf(before), metav1.DeleteOptions{}))
	_, err := w.core.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeOf(before)}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, w.listInstances(t)[0].Phase)
	w.requirePhase(t, before.ID, provisioners.Terminated)
}

func TestNotices(t *testing.T) {
	t.Parallel()
	interruption, degraded := provisioners.NoticeInterruption, provisioners.NoticeDegraded
	taint := func(key string) func(*world, string) {
		return func(w *world, node string) { w.taintNode(node, key) }
	}
	status := func(by func(*corev1.Node)) func(*world, string) {
		return func(w *world, node string) { w.changeStatus(node, by) }
	}
	for what, test := range map[string]struct {
		change func(*world, string)
		kind   provisioners.NoticeKind
		words  string
	}{
		"spot":               {taint("aws-node-termination-handler/spot-itn"), interruption, "spot-itn"},
		"cluster autoscaler": {taint("ToBeDeletedByClusterAutoscaler"), interruption, "ToBeDeleted"},
		"karpenter":          {taint("karpenter.sh/disrupted"), interruption, "karpenter.sh/disrupted"},
		"google":             {taint("cloud.google.com/impending-node-termination"), interruption, "impending"},
		"out of service":     {taint("node.kubernetes.io/out-of-service"), interruption, "out-of-service"},
		"configured":         {taint("example.com/going"), interruption, "example.com/going"},
		"rebalance":          {taint("aws-node-termination-handler/rebalance-recommendation"), degraded, "rebalance"},
		"cordoned": {func(w *world, n string) {
			w.updateNode(n,
				func(n *corev1.Node) { n.Spec.Unschedulable = true })
		}, degraded, "cordoned"},
		"not ready": {status(func(n *corev1.Node) {
			n.Status.Conditions[0].Status, n.Status.Conditions[0].Message = corev1.ConditionUnknown,
				"kubelet stopped posting"
		}), degraded, "kubelet stopped posting"},
		"broken GPUs": {status(func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions,
				corev1.NodeCondition{Type: "AcceleratedHardwareReady", Status: corev1.ConditionFalse,
					Message: "XID 79"})
		}), degraded, "XID 79"},
		"gone": {func(w *world, n string) {
			require.NoError(w.t, w.core.Nodes().Delete(w.t.Context(), n, metav1.DeleteOptions{}))
		}, interruption, "not in the cluster"},
	} {
		w := newWorld(t, func(c *kubernetes.Config) { c.InterruptionTaints = []string{"example.com/going"} })
		machine := w.createRunning(t)
		test.change(w, nodeOf(machine))
		got := w.requirePhase(t, machine.ID, provisioners.Running)
		require.NotNil(t, got.Notice, what)
		require.Equal(t, test.kind, got.Notice.Kind, what)
		require.Contains(t, got.Notice.Message, test.words, what)
		require.Equal(t, got.Notice, w.listInstances(t)[0].Notice, what)
	}
}

// A kubelet or device plugin that restarts must not drain its node.
func TestANodeThatIsUnwellForAMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	machine := w.createRunning(t)
	has := func(count int64) {
		w.changeStatus(nodeOf(machine), func(n *corev1.Node) {
			amount := n.Status.Allocatable[gpus]
			amount.Set(count)
			n.Status.Allocatable[gpus] = amount
		})
	}
	has(0)
	require.Nil(t, w.requirePhase(t, machine.ID, provisioners.Running).Notice)
	w.clock.Advance(time.Minute)
	has(8)
	require.Nil(t, w.requirePhase(t, machine.ID, provisioners.Running).Notice)
	has(7)
	require.Nil(t, w.requirePhase(t, machine.ID, provisioners.Running).Notice)
	w.clock.Advance(2 * time.Minute)
	require.Contains(t, w.requirePhase(t, machine.ID, provisioners.Running).Notice.Message, "7 of 8 nvidia.com/gpu")

	w = newWorld(t)
	machine = w.createRunning(t)
	w.changeStatus(nodeOf(machine), func(n *corev1.Node) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse,
			metav1.NewTime(w.clock.Now())
	})
	require.Nil(t, w.requirePhase(t, machine.ID, provisioners.Running).Notice)
	w.clock.Advance(2 * time.Minute)
	require.NotNil(t, w.requirePhase(t, machine.ID, provisioners.Running).Notice)
}

func TestCordonOnDelete(t *testing.T) {
	t.Parallel()
	daemon := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d",
			Controller: new(true)}}
	}
	for what, test := range map[string]struct {
		beside func(*corev1.Pod)
		want   bool
	}{
		"nothing else":    {nil, true},
		"a daemon":        {daemon, true},
		"somebody's work": {func(*corev1.Pod) {}, false},
	} {
		w := newWorld(t, func(c *kubernetes.Config) { c.CordonOnDelete = true })
		machine := w.createRunning(t)
		if test.beside != nil {
			w.createPod("team", "other", 0, func(pod *corev1.Pod) {
				pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: nodeOf(machine)}
				test.beside(pod)
			})
			w.runControllers()
		}
		require.NoError(t, w.Delete(t.Context(), machine.ID))
		node, err := w.core.Nodes().Get(t.Context(), nodeOf(machine), metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, test.want, node.Spec.Unschedulable, what)
	}
}

// A right that is missing for the cordon is said, and does not keep the machine.
func TestACordonThatIsDeniedKeepsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *kubernetes.Config) { c.CordonOnDelete = true })
	machine := w.createRunning(t)
	w.server.Inject(denyFault("patch", "nodes"))
	require.Equal(t, provisioners.KindDenied, provisioners.KindOf(w.Delete(t.Context(), machine.ID)))
	w.advanceClock(10 * time.Second)
	w.requirePhase(t, machine.ID, provisioners.Terminated)
	require.NoError(t, w.Delete(t.Context(), machine.ID))
}
