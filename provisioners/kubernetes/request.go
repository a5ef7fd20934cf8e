//go:build clouds

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/forewarm/forewarm/provisioners"
)

var provisioningRequests = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1",
	Resource: "provisioningrequests"}

// requestCapacity asks the autoscaler for the placeholder's node by a ProvisioningRequest
// where the offer wants one. The pod comes first: a pod without its request only
// waits, a request without its pod would boot a node for nobody.
func (a api) requestCapacity(ctx context.Context, s *stored, offer Offer, pod *corev1.Pod) error {
	if offer.ProvisioningRequest == "" {
		return nil
	}
	err := a.requestTemplate(ctx, s, pod)
	if err == nil {
		_, err = a.open.Resource(provisioningRequests).Namespace(s.object.Namespace).
			Create(ctx, provisioningRequest(s, offer), metav1.CreateOptions{})
	}
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	if apierrors.IsNotFound(err) && a.lacksRequests(ctx) {
		err = provisioners.Errorf(provisioners.KindBadSpec, "the cluster has no ProvisioningRequests of %s",
			provisioningRequests.GroupVersion())
	}
	err = writeError(err, "requesting a node for pod %s/%s", s.object.Namespace, s.object.Name)
	if !provisioners.Final(err) {
		return mayExist(err)
	}
	if evicting := a.deletePod(ctx, pod); evicting != nil {
		return mayExist(errors.Join(err, evicting))
	}
	return err
}

// lacksRequests reports whether the cluster has no ProvisioningRequests. Its API
// server answers a request for a group that it does not have with a bare 404, as
// any proxy might; the list of its groups is its own.
func (a api) lacksRequests(ctx context.Context) bool {
	raw, err := a.core.RESTClient().Get().AbsPath("/apis").Do(ctx).Raw()
	var list metav1.APIGroupList
	if err != nil || json.Unmarshal(raw, &list) != nil || list.Kind != "APIGroupList" {
		return false
	}
	for _, group := range list.Groups {
		for _, version := range group.Versions {
			if version.GroupVersion == provisioningRequests.GroupVersion().String() {
				return false
			}
		}
	}
	return true
}

func (a api) requestTemplate(ctx context.Context, s *stored, pod *corev1.Pod) error {
	template := &corev1.PodTemplate{
		ObjectMeta: ownedMeta(s),
		Template:   corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
	}
	_, err := a.core.PodTemplates(s.object.Namespace).Create(ctx, template, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func ownedMeta(s *stored) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: s.object.Namespace, Name: s.object.Name, Labels: instanceLabels(s.Spec, "request"),
		OwnerReferences: []metav1.OwnerReference{ownedBy(s)},
	}
}

func provisioningRequest(s *stored, offer Offer) *unstructured.Unstructured {
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
		"spec": map[string]any{
			"provisioningClassName": offer.ProvisioningRequest,
			"podSets": []any{map[string]any{"count": int64(1),
				"podTemplateRef": map[string]any{"name": s.object.Name}}},
		},
	}}
	request.SetNamespace(s.object.Namespace)
	request.SetName(s.object.Name)
	request.SetLabels(instanceLabels(s.Spec, "request"))
	request.SetOwnerReferences([]metav1.OwnerReference{ownedBy(s)})
	return request
}

// requestRefused says why the autoscaler has given the request up.
func (a api) requestRefused(ctx context.Context, s seen) (string, error) {
	request, err := a.open.Resource(provisioningRequests).Namespace(s.key.namespace).Get(ctx, s.key.name,
		metav1.GetOptions{})
	switch {
	case isNotFound(err, s.key.name): // a Create that is repeated makes it
		return "", nil
	case err != nil:
		return "", readError(err, "reading the ProvisioningRequest %s/%s", s.key.namespace, s.key.name)
	}
	conditions, _, err := unstructured.NestedSlice(request.Object, "status", "conditions")
	if err != nil {
		return "", readError(err, "reading the conditions of ProvisioningRequest %s/%s", s.key.namespace, s.key.name)
	}
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		kind, _ := condition["type"].(string)
		status, _ := condition["status"].(string)
		message, _ := condition["message"].(string)
		if status == "True" && kind == "Failed" {
			return "ProvisioningRequest failed: " + message, nil
		}
	}
	return "", nil
}

// deleteRequest removes the request of a machine that is over, which would otherwise
// go on booking a node.
func (a api) deleteRequest(ctx context.Context, s seen) error {
	if s.record == nil || !s.record.Want.Request {
		return nil
	}
	err := a.open.Resource(provisioningRequests).Namespace(s.key.namespace).Delete(ctx, s.key.name,
		metav1.DeleteOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return readError(err, "withdrawing the ProvisioningRequest %s/%s", s.key.namespace, s.key.name)
}
