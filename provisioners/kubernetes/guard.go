//go:build clouds

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/forewarm/forewarm/provisioners"
)

// A guard is a Job that runs nothing: its parallelism is 0. At its deadline the cluster's
// own controllers fail it, remove it, and with it the buffer that it owns. Keep moves
// the deadline. So a buffer ends when nobody keeps it, and nobody has to be alive for it.

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

func (k bufferKeeper) guards() dynamic.ResourceInterface {
	return k.api().open.Resource(jobs).Namespace(k.config().Namespace)
}

// ensureGuard makes the buffer's guard, or returns the one that is there.
func (k bufferKeeper) ensureGuard(ctx context.Context, b buffer) (*unstructured.Unstructured, error) {
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&b.template)
	if err != nil {
		return nil, fmt.Errorf("rendering the guard of a buffer: %w", err)
	}
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"spec": map[string]any{
			"parallelism": int64(0), "backoffLimit": int64(0), "ttlSecondsAfterFinished": int64(0),
			"activeDeadlineSeconds": int64(k.keepUntil(false).Sub(k.now()).Seconds()), "template": template,
		},
	}}
	job.SetName(b.name)
	job.SetLabels(b.labels)
	made, err := k.guards().Create(ctx, job, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return k.readGuard(ctx, b)
	case err != nil:
		return nil, writeError(err, "making Job %s/%s", k.config().Namespace, b.name)
	}
	if err := checkRuns(made); err != nil {
		return nil, errors.Join(err, k.removeGuard(ctx, b))
	}
	return made, nil
}

// checkRuns returns an error for a guard whose deadline does not run, because it is
// suspended.
func checkRuns(job *unstructured.Unstructured) error {
	suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	started, _, _ := unstructured.NestedString(job.Object, "status", "startTime")
	if !suspended || started != "" {
		return nil
	}
	return provisioners.Errorf(provisioners.KindBadSpec, "Job %s/%s was suspended when it was made, as Kueue does with "+
		"those that it manages, and would never end its buffer: have Kueue leave out that namespace, or set "+
		"warm_with: placeholder",
		job.GetNamespace(), job.GetName())
}

// readGuard reads a guard that is there to stay.
func (k bufferKeeper) readGuard(ctx context.Context, b buffer) (*unstructured.Unstructured, error) {
	job, err := k.guards().Get(ctx, b.name, metav1.GetOptions{})
	if err != nil {
		return nil, readError(err, "reading Job %s/%s", k.config().Namespace, b.name)
	}
	over := job.GetDeletionTimestamp() != nil
	for _, c := range conditionsOf(job) {
		over = over || c.Type == "Failed" && c.Status == metav1.ConditionTrue
	}
	if over {
		return nil, provisioners.Errorf(provisioners.KindTransient, "Job %s/%s is over, and about to be removed",
			job.GetNamespace(), b.name)
	}
	return job, checkRuns(job)
}

// renewGuard moves the guard's deadline, at most as often as it must be moved. Where there
// is no guard, the buffer is made anew when it is sized.
func (k bufferKeeper) renewGuard(ctx context.Context, b buffer) error {
	job, err := k.guards().Get(ctx, b.name, metav1.GetOptions{})
	switch {
	case isNotFound(err, b.name):
		return nil
	case err != nil:
		return readError(err, "reading Job %s/%s", k.config().Namespace, b.name)
	}
	deadline, _, _ := unstructured.NestedInt64(job.Object, "spec", "activeDeadlineSeconds")
	born := job.GetCreationTimestamp().Time
	left := born.Add(time.Duration(deadline) * time.Second).Sub(k.now())
	until := k.keepUntil(false)
	if until.Sub(k.now())-left < k.config().keepWithin()/2 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": job.GetUID()},
		"spec": map[string]any{"activeDeadlineSeconds": int64(until.Sub(born).Seconds())}})
	if err != nil {
		return fmt.Errorf("rendering the deadline of Job %s: %w", b.name, err)
	}
	_, err = k.guards().Patch(ctx, b.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !isNotFound(err, b.name) {
		return readError(err, "moving the deadline of Job %s/%s", k.config().Namespace, b.name)
	}
	return nil
}

func (k bufferKeeper) removeGuard(ctx context.Context, b buffer) error {
	err := k.guards().Delete(ctx, b.name,
		metav1.DeleteOptions{PropagationPolicy: pointerTo(metav1.DeletePropagationBackground)})
	if err != nil && !apierrors.IsNotFound(err) {
		return readError(err, "removing Job %s/%s", k.config().Namespace, b.name)
	}
	return nil
}
