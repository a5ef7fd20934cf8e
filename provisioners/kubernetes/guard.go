//go:build clouds

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
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
// own controllers fail it, remove it, and with it what it owns: a buffer, or a placeholder,
// also one that never got a node and so has nobody else who could end it. Keep moves
// the deadline. So both end when nobody keeps them, and nobody has to be alive for it.

// guard names one, with the shape of what it guards, which it would run if it ran any.
type guard struct {
	name     string
	labels   map[string]string
	template corev1.PodTemplateSpec
	owners   []metav1.OwnerReference
}

// guardKeeper makes guards, and moves their deadlines.
type guardKeeper struct{ *eyes }

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

func (k guardKeeper) objects() dynamic.ResourceInterface {
	return k.api().open.Resource(jobs).Namespace(k.config().Namespace)
}

// placeholderGuard is the guard of the record's placeholder. It goes with the record.
func (c Config) placeholderGuard(s *stored, offer Offer) guard {
	return guard{name: s.object.Name, labels: instanceLabels(s.Spec, roleGuard), template: c.bufferTemplate(offer),
		owners: []metav1.OwnerReference{ownedBy(s)}}
}

// ensureGuard makes the guard, or returns the one that is there.
func (k guardKeeper) ensureGuard(ctx context.Context, g guard) (*unstructured.Unstructured, error) {
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&g.template)
	if err != nil {
		return nil, fmt.Errorf("rendering a guard: %w", err)
	}
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"spec": map[string]any{
			"parallelism": int64(0), "backoffLimit": int64(0), "ttlSecondsAfterFinished": int64(0),
			"activeDeadlineSeconds": int64(k.keepUntil(false).Sub(k.now()).Seconds()), "template": template,
		},
	}}
	job.SetName(g.name)
	job.SetLabels(g.labels)
	job.SetOwnerReferences(g.owners)
	made, err := k.objects().Create(ctx, job, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		if made, err = k.readGuard(ctx, g.name); err == nil {
			err = k.moveDeadline(ctx, made)
		}
		return made, err
	case err != nil:
		return nil, writeError(err, "making Job %s/%s", k.config().Namespace, g.name)
	}
	if err := checkRuns(made); err != nil {
		return nil, errors.Join(err, k.removeGuard(ctx, g.name))
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
		"those that it manages, and would never end what it guards: have Kueue leave out that namespace",
		job.GetNamespace(), job.GetName())
}

// readGuard reads a guard that is there to stay.
func (k guardKeeper) readGuard(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	job, err := k.objects().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, readError(err, "reading Job %s/%s", k.config().Namespace, name)
	}
	over := job.GetDeletionTimestamp() != nil
	for _, c := range conditionsOf(job) {
		over = over || c.Type == "Failed" && c.Status == metav1.ConditionTrue
	}
	if over {
		return nil, provisioners.Errorf(provisioners.KindTransient, "Job %s/%s is over, and about to be removed",
			job.GetNamespace(), name)
	}
	return job, checkRuns(job)
}

// renewGuard moves the guard's deadline. Where there is no guard, what it guarded is about to
// go, and is made anew with another.
func (k guardKeeper) renewGuard(ctx context.Context, name string) error {
	job, err := k.objects().Get(ctx, name, metav1.GetOptions{})
	switch {
	case isNotFound(err, name):
		return nil
	case err != nil:
		return readError(err, "reading Job %s/%s", k.config().Namespace, name)
	}
	return k.moveDeadline(ctx, job)
}

// moveDeadline moves it at most as often as it must be moved.
func (k guardKeeper) moveDeadline(ctx context.Context, job *unstructured.Unstructured) error {
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
		return fmt.Errorf("rendering the deadline of Job %s: %w", job.GetName(), err)
	}
	_, err = k.objects().Patch(ctx, job.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !isNotFound(err, job.GetName()) {
		return readError(err, "moving the deadline of Job %s/%s", k.config().Namespace, job.GetName())
	}
	return nil
}

// removeGuard removes the guard, and the cluster with it what it guards.
func (k guardKeeper) removeGuard(ctx context.Context, name string) error {
	err := k.objects().Delete(ctx, name,
		metav1.DeleteOptions{PropagationPolicy: pointerTo(metav1.DeletePropagationBackground)})
	if err != nil && !apierrors.IsNotFound(err) {
		return readError(err, "removing Job %s/%s", k.config().Namespace, name)
	}
	return nil
}

// guardedBy is the reference of what ends with the guard.
func guardedBy(job *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job.GetName(), UID: job.GetUID()}
}
