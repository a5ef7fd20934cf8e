//go:build clouds

package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
)

const class = "check-capacity.autoscaling.x-k8s.io"

func withProvisioningRequest(c *kubernetes.Config) { c.Offers[0].ProvisioningRequest = class }

func (w *world) provisioningRequests(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	open, err := dynamic.NewForConfig(&rest.Config{Host: w.url, UserAgent: "hands", QPS: -1})
	require.NoError(t, err)
	return open.Resource(schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1",
		Resource: "provisioningrequests"}).Namespace("forewarm")
}

func TestProvisioningRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withProvisioningRequest)
	w.server.Define("provisioningrequests", "ProvisioningRequest", "autoscaling.x-k8s.io/v1")
	w.boot = time.Hour
	made := w.createInstance(t)
	request, err := w.provisioningRequests(t).Get(t.Context(), podName(made.ID), metav1.GetOptions{})
	require.NoError(t, err)
	got, _, err := unstructured.NestedString(request.Object, "spec", "provisioningClassName")
	require.NoError(t, err)
	require.Equal(t, class, got)
	template, err := w.core.PodTemplates("forewarm").Get(t.Context(), podName(made.ID), metav1.GetOptions{})
	require.NoError(t, err)
	pod := w.listPods()[0]
	require.Equal(t, pod.Spec, template.Template.Spec)
	require.Equal(t, podName(made.ID), pod.Annotations["autoscaling.x-k8s.io/consume-provisioning-request"])
	w.requirePhase(t, made.ID, provisioners.Booting)

	request.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True",
		"message": "no capacity in zone a"}}}
	_, err = w.provisioningRequests(t).UpdateStatus(t.Context(), request, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Contains(t, w.requirePhase(t, made.ID, provisioners.Terminated).Notice.Message, "no capacity in zone a")
	require.Empty(t, w.listPods())
	_, err = w.provisioningRequests(t).Get(t.Context(), podName(made.ID), metav1.GetOptions{})
	require.Error(t, err, "it would go on booking a node")
}

func TestAClusterWithoutProvisioningRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withProvisioningRequest)
	_, err := w.Create(t.Context(), "token", w.testSpec())
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err), "%v", err)
	require.Empty(t, w.listPods(), "a pod without its request would wait for ever")
	require.Empty(t, w.listInstances(t))
}

func TestARequestThatMayHaveFailedIsMadeByTheRepeat(t *testing.T) {
	t.Parallel()
	for _, fault := range []apitest.Fault{
		{On: usesOf("create", "provisioningrequests"), Refuse: serverUnavailable()},
		{On: usesOf("create", "provisioningrequests"), Cut: true},
		{On: usesOf("create", "podtemplates"), Cut: true},
	} {
		w := newWorld(t, withProvisioningRequest)
		w.server.Define("provisioningrequests", "ProvisioningRequest", "autoscaling.x-k8s.io/v1")
		w.server.Inject(fault)
		_, err := w.Create(t.Context(), "token", w.testSpec())
		require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err), "%v", err)
		made := w.createInstance(t)
		_, err = w.provisioningRequests(t).Get(t.Context(), podName(made.ID), metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, w.Delete(t.Context(), made.ID))
		require.NoError(t, w.Delete(t.Context(), made.ID))
		require.Empty(t, w.listPods())
	}
}
