//go:build clouds

package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
)

func TestStatesOfNodes(t *testing.T) {
	t.Parallel()
	notReady := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }
	noGPUs := func(n *corev1.Node) { n.Status.Allocatable[gpus] = resource.MustParse("0") }
	for what, test := range map[string]struct {
		change func(*corev1.Node)
		age    time.Duration
		want   provisioners.NodeState
		words  string
	}{
		"up":                     {func(*corev1.Node) {}, 0, provisioners.NodeIdle, ""},
		"not ready yet":          {notReady, time.Minute, provisioners.NodePoweringUp, ""},
		"not ready any more":     {notReady, time.Hour, provisioners.NodeUnavailable, "kubectl describe node node-1"},
		"no device plugin yet":   {noGPUs, time.Minute, provisioners.NodePoweringUp, ""},
		"a device plugin is ill": {noGPUs, time.Hour, provisioners.NodeUnavailable, "device plugin"},
		"cordoned": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, 0, provisioners.NodeUnavailable,
			"kubectl uncordon node-1"},
		"to be removed": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
		}, 0, provisioners.NodePoweringDown, ""},
	} {
		w := newPlainWorld(t)
		name := w.addPlainNode()
		w.clock.Advance(test.age)
		w.updateNode(name, func(n *corev1.Node) { test.change(n) })
		w.changeStatus(name, func(n *corev1.Node) { test.change(n) })
		nodes := w.look(t, "").Nodes
		require.Len(t, nodes, 1, what)
		require.Equal(t, test.want, nodes[0].State, what)
		require.Contains(t, nodes[0].Message, test.words, what)
		require.Equal(t, test.want == provisioners.NodeIdle, w.askNode(t, "a").Phase == provisioners.Running, what)
	}
}

// A node serves an offer when a pod of the offer's shape may be put there.
func TestNodesOfAnOffer(t *testing.T) {
	t.Parallel()
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Value: "gpu", Effect: effect}} }
	}
	label := func(n *corev1.Node) { n.Labels["zone"] = "a" }
	for what, test := range map[string]struct {
		node  func(*corev1.Node)
		offer func(*kubernetes.Offer)
		want  bool
	}{
		"plain":           {nil, nil, true},
		"too few GPUs":    {nil, func(o *kubernetes.Offer) { o.GPUs = 16 }, false},
		"other GPUs":      {nil, func(o *kubernetes.Offer) { o.Resource = "amd.com/gpu" }, false},
		"other label":     {nil, func(o *kubernetes.Offer) { o.NodeSelector = map[string]string{"zone": "a"} }, false},
		"its label":       {label, func(o *kubernetes.Offer) { o.NodeSelector = map[string]string{"zone": "a"} }, true},
		"the GPUs' taint": {taint("nvidia.com/gpu", corev1.TaintEffectNoSchedule), nil, true},
		"a taint":         {taint("dedicated", corev1.TaintEffectNoSchedule), nil, false},
		"a soft taint":    {taint("dedicated", corev1.TaintEffectPreferNoSchedule), nil, true},
		"a tolerated taint": {taint("dedicated", corev1.TaintEffectNoSchedule), func(o *kubernetes.Offer) {
			o.Tolerations = []kubernetes.Toleration{{Key: "dedicated", Value: "gpu"}}
		}, true},
		"another value": {taint("dedicated", corev1.TaintEffectNoSchedule), func(o *kubernetes.Offer) {
			o.Tolerations = []kubernetes.Toleration{{Key: "dedicated", Value: "cpu"}}
		}, false},
		"in":     {label, affinity("zone", "In", "a", "b"), true},
		"not in": {label, affinity("zone", "NotIn", "a"), false},
		"exists": {nil, affinity("zone", "Exists"), false},
		"lacks":  {nil, affinity("zone", "DoesNotExist"), true},
	} {
		w := newPlainWorld(t, func(c *kubernetes.Config) {
			c.Offers = c.Offers[:1]
			if test.offer != nil {
				test.offer(&c.Offers[0])
			}
		})
		name := w.addPlainNode()
		if test.node != nil {
			w.updateNode(name, test.node)
		}
		require.Equal(t, test.want, len(w.look(t, "").Nodes) == 1, what)
	}
}

func affinity(key, operator string, values ...string) func(*kubernetes.Offer) {
	return func(o *kubernetes.Offer) {
		o.NodeAffinity = []kubernetes.Match{{Key: key, Operator: operator, Values: values}}
	}
}

// A pod that is made in place of another one of its gang holds nobody up.
func TestAGangThatIsMended(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	join := func(pod *corev1.Pod) { pod.Labels["scheduling.x-k8s.io/pod-group"] = "gang" }
	w.addPlainNode()
	w.room = 1
	w.createPod("team", "gang-0", 4, join)
	w.createPod("team", "gang-1", 4, join)
	w.runControllers()
	before := w.look(t, "").Work
	require.Len(t, before, 2)
	w.advanceClock(time.Minute)
	w.createPod("team", "gang-2", 4, join)
	w.runControllers()
	waiting := 0
	for _, work := range w.look(t, "").Work {
		if work.Waiting != "" {
			waiting++
			continue
		}
		require.Equal(t, before[0].StartedAt, work.StartedAt)
	}
	require.Equal(t, 1, waiting)
}

// An API server whose watches know of changes of pods alone, while its lists have the version of all changes, is
// believed when it has told what it knows, and nothing is lost.
func TestAWatchThatKnowsOfPodsAlone(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.addPlainNode()
	w.server.KnowOwnKindOnly()
	mark := w.look(t, "").Mark
	w.submit(t, wholeNode)
	w.changeOther(t)
	seen := w.look(t, mark)
	require.Len(t, seen.Work, 1)
	for _, pod := range w.listPods() {
		w.killPod(pod)
	}
	w.changeOther(t)
	seen = w.look(t, seen.Mark)
	require.Len(t, seen.Work, 1)
	require.False(t, seen.Work[0].EndedAt.IsZero())
	require.Empty(t, w.look(t, seen.Mark).Work)
}

// changeOther has the versions go on without pods.
func (w *plainWorld) changeOther(t *testing.T) {
	t.Helper()
	_, err := w.core.ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// An API server that does not say where it is makes the next look begin where the last
// change was told, so that none is lost.
func TestAWatchWithoutBookmarks(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.addPlainNode()
	mark := w.look(t, "").Mark
	w.server.OmitBookmarks()
	for range 3 {
		w.submit(t, wholeNode)
		for _, pod := range w.listPods() {
			w.killPod(pod)
		}
		w.changeOther(t)
		seen, err := w.Observe(t.Context(), mark)
		require.NoError(t, err)
		require.False(t, seen.Complete)
		require.Contains(t, seen.Gap, "changes up to version")
		require.Len(t, seen.Work, 1)
		require.NotEqual(t, mark, seen.Mark)
		mark = seen.Mark
		seen, err = w.Observe(t.Context(), mark)
		require.NoError(t, err)
		require.Empty(t, seen.Work)
	}
}
