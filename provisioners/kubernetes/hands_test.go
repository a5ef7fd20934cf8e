//go:build clouds

package kubernetes_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/forewarm/forewarm/internal/clock"
)

const gpus = corev1.ResourceName("nvidia.com/gpu")

// hands are everything of a cluster that is not its API server: autoscaler,
// scheduler, kubelets and garbage collector. They speak to whatever API server
// they are given, and move only when step is called.
type hands struct {
	t *testing.T
	// scope is the one namespace that they serve, with nodes of their own; empty
	// for all. An API server that is shared by tests needs it.
	scope string
	core  corev1client.CoreV1Interface
	clock *clock.Manual
	boot  time.Duration        // how long a pod waits for a new node
	room  int                  // how many nodes there can be
	doom  map[string]time.Time // when a node goes
	made  int
	jobs  dynamic.NamespaceableResourceInterface // the guards
	// device is the resource of GPUs; empty for the usual one.
	device corev1.ResourceName
	// plain is the part of hands for the cluster's own users; nil: there are none.
	plain *plainHands
}

const mostRounds = 50

// runControllers does what the cluster would have done until now.
func (h *hands) runControllers() {
	h.t.Helper()
	for range mostRounds {
		if !h.runRound() {
			return
		}
	}
	require.FailNow(h.t, "the cluster does not come to rest")
}

func (h *hands) runRound() (moved bool) {
	pods := h.listPods()
	schedule := h.schedulePods
	if h.plain != nil {
		schedule = h.serveUsers
	}
	for _, one := range []func([]corev1.Pod) bool{h.loseNodes, h.endPods, h.collectGarbage, schedule, h.runPods,
		h.expirePods} {
		if one(pods) {
			return true
		}
	}
	return false
}

func (h *hands) listPods() []corev1.Pod {
	list, err := h.core.Pods(h.scope).List(h.t.Context(), metav1.ListOptions{})
	require.NoError(h.t, err)
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(-cmp.Compare(podPriority(a), podPriority(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	return list.Items
}

func podPriority(pod corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

func (h *hands) listNodes() []corev1.Node {
	list, err := h.core.Nodes().List(h.t.Context(), metav1.ListOptions{})
	require.NoError(h.t, err)
	return slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return !strings.HasPrefix(n.Name, h.scope) })
}

func (h *hands) killPod(pod corev1.Pod) {
	err := h.core.Pods(pod.Namespace).Delete(context.Background(), pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if !apierrors.IsNotFound(err) {
		require.NoError(h.t, err)
	}
}

func (h *hands) loseNodes(pods []corev1.Pod) (moved bool) {
	for name, at := range h.doom {
		if h.clock.Now().Before(at) {
			continue
		}
		require.NoError(h.t, h.core.Nodes().Delete(h.t.Context(), name, metav1.DeleteOptions{}))
		delete(h.doom, name)
		for _, pod := range pods {
			if pod.Spec.NodeName == name {
				h.killPod(pod)
			}
		}
		moved = true
	}
	return moved
}

func (h *hands) endPods(pods []corev1.Pod) (moved bool) {
	for _, pod := range pods {
		// The programs of users' clusters end as soon as they are told to.
		if pod.DeletionTimestamp != nil && (h.plain != nil || !h.clock.Now().Before(pod.DeletionTimestamp.Time)) {
			h.killPod(pod)
			moved = true
		}
	}
	return moved
}

// collectGarbage is the job controller, and the garbage collector: it removes guards at
// their deadline, and pods whose guard or record is gone.
func (h *hands) collectGarbage(pods []corev1.Pod) (moved bool) {
	guards := h.livingGuards()
	for _, pod := range pods {
		for _, owner := range pod.OwnerReferences {
			if owner.Kind == "Job" && owner.Controller == nil && !guards[owner.UID] {
				h.killPod(pod)
				moved = true
			}
			if owner.Kind != "ConfigMap" {
				continue
			}
			object, err := h.core.ConfigMaps(pod.Namespace).Get(h.t.Context(), owner.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && object.UID != owner.UID {
				h.killPod(pod)
				moved = true
			}
		}
	}
	return moved
}

func gpusOf(pod corev1.Pod) int64 {
	amount := pod.Spec.Containers[0].Resources.Requests[gpus]
	return amount.Value()
}

func hasFinished(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// schedulePods puts waiting pods on nodes with free GPUs, makes lower pods give way,
// or boots a node.
func (h *hands) schedulePods(pods []corev1.Pod) (moved bool) {
	nodes := h.listNodes()
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || hasFinished(pod) {
			continue
		}
		if node := h.nodeWithRoom(pod, pods, nodes); node != "" {
			h.bindPod(pod, node)
			return true
		}
		if h.preemptLower(pod, pods) {
			return true
		}
		if h.clock.Now().Sub(pod.CreationTimestamp.Time) < h.boot {
			continue
		}
		if len(nodes) < h.room {
			h.addNode(gpusOf(pod))
			return true
		}
		moved = h.refuseScaleUp(pod) || moved
	}
	return moved
}

func (h *hands) nodeWithRoom(pod corev1.Pod, pods []corev1.Pod, nodes []corev1.Node) string {
	for _, node := range nodes {
		amount := node.Status.Allocatable[gpus]
		left := amount.Value()
		for _, other := range pods {
			if other.Spec.NodeName == node.Name && !hasFinished(other) {
				left -= gpusOf(other)
			}
		}
		fits := pod.Spec.NodeSelector[corev1.LabelHostname] == "" ||
			pod.Spec.NodeSelector[corev1.LabelHostname] == node.Name
		if left >= gpusOf(pod) && fits && !node.Spec.Unschedulable {
			return node.Name
		}
	}
	return ""
}

func (h *hands) bindPod(pod corev1.Pod, node string) {
	require.NoError(h.t, h.core.Pods(pod.Namespace).Bind(h.t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{}))
}

// preemptLower lets a pod that names its node have it.
func (h *hands) preemptLower(pod corev1.Pod, pods []corev1.Pod) bool {
	node := pod.Spec.NodeSelector[corev1.LabelHostname]
	for _, victim := range pods {
		if node == "" || victim.Spec.NodeName != node || podPriority(victim) >= podPriority(pod) ||
			victim.DeletionTimestamp != nil {
			continue
		}
		pod.Status.NominatedNodeName = node
		_, err := h.core.Pods(pod.Namespace).UpdateStatus(h.t.Context(), &pod, metav1.UpdateOptions{})
		require.NoError(h.t, err)
		require.NoError(h.t, h.core.Pods(victim.Namespace).Delete(h.t.Context(), victim.Name, metav1.DeleteOptions{}))
		return true
	}
	return false
}

func (h *hands) addNode(count int64) {
	h.made++
	name := fmt.Sprint(h.scope, "node-", h.made)
	amount := corev1.ResourceList{gpus: *resource.NewQuantity(count, resource.DecimalSI)}
	_, err := h.core.Nodes().Create(h.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Capacity: amount, Allocatable: amount,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("10.0.0.", h.made)}},
		},
	}, metav1.CreateOptions{})
	require.NoError(h.t, err)
}

// refuseScaleUp is the cluster autoscaler's no, said once for each pod.
func (h *hands) refuseScaleUp(pod corev1.Pod) bool {
	_, err := h.core.Events(pod.Namespace).Create(h.t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + ".no"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         "NotTriggerScaleUp", Message: "pod didn't trigger scale-up: 1 max node group size reached",
		Type: corev1.EventTypeNormal, LastTimestamp: metav1.NewTime(h.clock.Now()),
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false
	}
	require.NoError(h.t, err)
	return true
}

// runPods is the kubelet that starts what is on its node.
func (h *hands) runPods(pods []corev1.Pod) (moved bool) {
	for _, pod := range pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending {
			continue
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Image: "x", ImageID: "x",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(h.clock.Now())}},
		}}
		_, err := h.core.Pods(pod.Namespace).UpdateStatus(h.t.Context(), &pod, metav1.UpdateOptions{})
		require.NoError(h.t, err)
		moved = true
	}
	return moved
}

// expirePods is what the placeholder's own script does.
func (h *hands) expirePods(pods []corev1.Pod) (moved bool) {
	for _, pod := range pods {
		until, err := strconv.ParseInt(pod.Annotations["forewarm.dev/expires-at"], 10, 64)
		if err != nil || pod.Status.Phase != corev1.PodRunning || h.clock.Now().Unix() < until {
			continue
		}
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(time.Unix(until, 0))},
		}
		_, err = h.core.Pods(pod.Namespace).UpdateStatus(h.t.Context(), &pod, metav1.UpdateOptions{})
		require.NoError(h.t, err)
		moved = true
	}
	return moved
}

// reclaimSpot is a spot interruption: the taint, and two minutes later the end.
func (h *hands) reclaimSpot(namespace, name string) {
	pod, err := h.core.Pods(namespace).Get(h.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	require.NoError(h.t, err)
	if pod.Spec.NodeName == "" {
		h.killPod(*pod)
		return
	}
	h.taintNode(pod.Spec.NodeName, "aws-node-termination-handler/spot-itn")
	if _, doomed := h.doom[pod.Spec.NodeName]; !doomed {
		h.doom[pod.Spec.NodeName] = h.clock.Now().Add(2 * time.Minute)
	}
}

func (h *hands) taintNode(node, key string) {
	h.updateNode(node, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	})
}

func (h *hands) updateNode(name string, by func(*corev1.Node)) {
	node, err := h.core.Nodes().Get(h.t.Context(), name, metav1.GetOptions{})
	require.NoError(h.t, err)
	by(node)
	_, err = h.core.Nodes().Update(h.t.Context(), node, metav1.UpdateOptions{})
	require.NoError(h.t, err)
}

func (h *hands) changeStatus(name string, by func(*corev1.Node)) {
	node, err := h.core.Nodes().Get(h.t.Context(), name, metav1.GetOptions{})
	require.NoError(h.t, err)
	by(node)
	_, err = h.core.Nodes().UpdateStatus(h.t.Context(), node, metav1.UpdateOptions{})
	require.NoError(h.t, err)
}

// gpu is the resource of GPUs.
func (h *hands) gpu() corev1.ResourceName { return cmp.Or(h.device, gpus) }

// createPod makes somebody's pod.
func (h *hands) createPod(namespace, name string, count int64, by func(*corev1.Pod)) types.UID {
	amount := corev1.ResourceList{h.gpu(): *resource.NewQuantity(count, resource.DecimalSI)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "x", Image: "x", Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount},
			SecurityContext: restrictedContext(),
		}}},
	}
	if by != nil {
		by(pod)
	}
	made, err := h.core.Pods(namespace).Create(h.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(h.t, err)
	return made.UID
}

// restrictedContext is what the pod security of our own manifest asks for.
func restrictedContext() *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func resources(name corev1.ResourceName, amount string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(amount)}
}
