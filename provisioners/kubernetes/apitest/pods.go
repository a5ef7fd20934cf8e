//go:build clouds

package apitest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	usualGrace = 30 // seconds
	// The PriorityClass of deploy/kubernetes/placeholders.yaml, and its value.
	lowClass, lowPriority = "forewarm-placeholder", -5
)

// initializePod gives a new pod what the server gives it.
func (s *Server) initializePod(o object) {
	o.Object["status"] = map[string]any{"phase": string(corev1.PodPending)}
	if _, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "terminationGracePeriodSeconds"); !found {
		_ = unstructured.SetNestedField(o.Object, float64(usualGrace), "spec", "terminationGracePeriodSeconds")
	}
	if stringAt(o, "spec", "priorityClassName") == lowClass {
		_ = unstructured.SetNestedField(o.Object, float64(s.priority), "spec", "priority")
	}
}

func stringAt(o object, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

// endPod removes a pod that no kubelet has to end, and marks any other.
func (s *Server) endPod(c call, kept object, grace *int64) answer {
	seconds, _, _ := unstructured.NestedFieldNoCopy(kept.Object, "spec", "terminationGracePeriodSeconds")
	wait := time.Duration(usualGrace) * time.Second
	if number, is := seconds.(float64); is {
		wait = time.Duration(number) * time.Second
	}
	if grace != nil {
		wait = time.Duration(*grace) * time.Second
	}
	phase := corev1.PodPhase(stringAt(kept, "status", "phase"))
	if stringAt(kept, "spec", "nodeName") == "" || phase == corev1.PodSucceeded || phase == corev1.PodFailed ||
		wait == 0 {
		s.dropObject(c.objectKey())
		return answer{http.StatusOK, kept}
	}
	if kept.GetDeletionTimestamp() != nil {
		return answer{http.StatusOK, kept}
	}
	next := object{kept.DeepCopy()}
	at := metav1.NewTime(s.clock.Now().Add(wait).Truncate(time.Second))
	next.SetDeletionTimestamp(&at)
	return answer{http.StatusOK, s.putObject(c.objectKey(), next)}
}

// bindPod is how a scheduler puts a pod on a node.
func (s *Server) bindPod(c call) answer {
	kept, found := s.objects[c.objectKey()]
	var binding corev1.Binding
	switch {
	case !found:
		return notFound(c)
	case json.Unmarshal(c.body, &binding) != nil:
		return refusalAnswer(http.StatusBadRequest, metav1.StatusReasonBadRequest, "no Binding", c)
	case stringAt(kept, "spec", "nodeName") != "" || kept.GetDeletionTimestamp() != nil:
		return refusalAnswer(http.StatusConflict, metav1.StatusReasonConflict, "the pod is assigned or being deleted",
			c)
	}
	next := object{kept.DeepCopy()}
	_ = unstructured.SetNestedField(next.Object, binding.Target.Name, "spec", "nodeName")
	_ = unstructured.SetNestedSlice(next.Object, []any{map[string]any{
		"type": string(corev1.PodScheduled), "status": string(corev1.ConditionTrue),
		"lastTransitionTime": s.clock.Now().UTC().Format(time.RFC3339),
	}}, "status", "conditions")
	s.putObject(c.objectKey(), next)
	return answer{http.StatusCreated, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess}}
}

func (s *Server) podLog(c call) answer {
	kept, found := s.objects[c.objectKey()]
	if !found {
		return notFound(c)
	}
	if stringAt(kept, "status", "phase") == string(corev1.PodPending) {
		return refusalAnswer(http.StatusBadRequest, metav1.StatusReasonBadRequest,
			"container is waiting to start: ContainerCreating", c)
	}
	text := s.logs[c.namespace+"/"+c.name]
	if limit, err := strconv.Atoi(c.queryParam("limitBytes")); err == nil && len(text) > limit {
		text = text[:limit]
	}
	return answer{http.StatusOK, text}
}
