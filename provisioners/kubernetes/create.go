//go:build clouds

package kubernetes

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// attempts bounds how often a record that others change is read again.
const attempts = 8

// Create writes the token's record, then its placeholder, then that it was made.
// Every process that is given the token does the same with the same names, so
// that the API server lets one of them win each step.
func (c *Cluster) Create(ctx context.Context, token string, asked provisioners.Spec) (provisioners.Instance, error) {
	return untilItStays(func() (provisioners.Instance, error) { return c.createOnce(ctx, token, asked) })
}

// errCameAndWent says that a pod was there when ours was to be made, and is not any more: another process was slower
// than a third one, and took its own away again (recordPlacement). The record knows whose stays by now.
var errCameAndWent = errors.New("the pod of this machine came and went")

// untilItStays creates a machine, again where its pod came and went.
func untilItStays(create func() (provisioners.Instance, error)) (made provisioners.Instance, err error) {
	for range attempts {
		if made, err = create(); !errors.Is(err, errCameAndWent) {
			return made, err
		}
	}
	return made, &provisioners.Error{Kind: provisioners.KindTransient, Message: "making a placeholder", Err: err}
}

func (c *Cluster) createOnce(ctx context.Context, token string, asked provisioners.Spec) (
	provisioners.Instance, error) {
	offer, err := c.checkRequest(ctx, token, asked)
	if err != nil {
		return provisioners.Instance{}, err
	}
	s, err := c.ensureRecord(ctx, token, asked, offer)
	if err != nil {
		return provisioners.Instance{}, err
	}
	if s.Ended || s.PodUID != "" {
		return c.reconcileRecord(ctx, s.instanceKey())
	}
	pod, err := c.ensurePlaceholder(ctx, s, offer, asked)
	if err != nil {
		return provisioners.Instance{}, err
	}
	return c.recordPlacement(ctx, s, pod)
}

func (c *Cluster) checkRequest(ctx context.Context, token string, asked provisioners.Spec) (Offer, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return Offer{}, err
	}
	if err := asked.Check(token); err != nil {
		return Offer{}, err
	}
	if !labelValue(asked.Owner) || !labelValue(asked.NodeID) {
		return Offer{}, provisioners.Errorf(provisioners.KindBadSpec,
			"owner %q or node %q cannot be the value of a label", asked.Owner, asked.NodeID)
	}
	return c.config.findOffer(asked)
}

// ensureRecord returns the token's record, which it makes where there is none.
func (c *Cluster) ensureRecord(ctx context.Context, token string, asked provisioners.Spec, offer Offer) (
	*stored, error) {
	known := spec{asked.Type, asked.Region, asked.Owner, asked.NodeID}
	s, err := c.api.getRecord(ctx, c.config.Namespace, nameOf(token))
	if err == nil && s == nil {
		s, err = c.createRecord(ctx, record{Token: token, Spec: known, Want: c.config.wantedOf(offer)})
	}
	if err != nil {
		return nil, err
	}
	if s.Spec != known {
		return nil, provisioners.Errorf(provisioners.KindBadSpec, "the token was used for %+v", s.Spec)
	}
	return s, nil
}

func (c Config) wantedOf(o Offer) want {
	return want{o.Resource, o.GPUs, o.Model, o.MemoryMiB, c.Probe, o.ProvisioningRequest != ""}
}

// createRecord makes the record, or reads that of another process which was faster.
func (c *Cluster) createRecord(ctx context.Context, r record) (*stored, error) {
	if err := c.checkStockOut(r.Spec); err != nil {
		return nil, err
	}
	s, err := c.writeRecord(ctx, r)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return nil, writeError(err, "writing a record into namespace %s", c.config.Namespace)
		}
		return s, nil
	}
	s, err = c.api.getRecord(ctx, c.config.Namespace, nameOf(r.Token))
	if err == nil && s == nil {
		err = provisioners.Errorf(provisioners.KindTransient,
			"ConfigMap %s/%s is not ours, or came and went", c.config.Namespace, nameOf(r.Token))
	}
	return s, err
}

// ensurePlaceholder makes the record's placeholder, or returns the one that is there.
func (c *Cluster) ensurePlaceholder(ctx context.Context, s *stored, offer Offer, asked provisioners.Spec) (
	*corev1.Pod, error) {
	wanted := c.config.newPlaceholder(s, offer, asked.ExpiresAt)
	if command := c.config.daemonCommand(asked); command != nil {
		addDaemon(wanted, command)
		if err := c.api.writeToken(ctx, s, asked.Daemon.Token); err != nil {
			return nil, err
		}
	}
	pod, err := c.api.core.Pods(s.object.Namespace).Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		pod, err = c.api.getPlaceholder(ctx, s)
	} else if err != nil {
		err = refusedMachine(err, "making pod %s/%s", s.object.Namespace, s.object.Name)
	}
	if err != nil {
		return nil, err
	}
	return pod, c.api.requestCapacity(ctx, s, offer, pod)
}

// getPlaceholder reads the pod that has our placeholder's name.
func (a api) getPlaceholder(ctx context.Context, s *stored) (*corev1.Pod, error) {
	pod, err := a.core.Pods(s.object.Namespace).Get(ctx, s.object.Name, metav1.GetOptions{})
	switch {
	case isNotFound(err, s.object.Name):
		return nil, errCameAndWent
	case err != nil:
		return nil, refusedMachine(err, "reading pod %s/%s", s.object.Namespace, s.object.Name)
	case pod.Labels[labelRole] != rolePlaceholder:
		return nil, provisioners.Errorf(provisioners.KindBadSpec, "pod %s/%s exists and is not ours",
			s.object.Namespace, s.object.Name)
	case !isPlaceholderOf(pod, s.object.UID): // of a record that is gone: the cluster collects it
		return nil, provisioners.Errorf(provisioners.KindUnknown, "pod %s/%s is of an older record", s.object.Namespace,
			s.object.Name)
	}
	return pod, nil
}

// recordPlacement writes that the placeholder was made. Where the record has meanwhile
// ended, or knows another placeholder, this one came too late and goes again.
func (c *Cluster) recordPlacement(ctx context.Context, s *stored, pod *corev1.Pod) (provisioners.Instance, error) {
	for range attempts {
		next := s.record
		next.PodUID, next.CreatedAt = pod.UID, pod.CreationTimestamp.UTC()
		err := c.api.updateRecord(ctx, s, next)
		if err == nil {
			return seen{key: s.instanceKey(), record: s, pod: pod}.portInstance(), nil
		}
		if !errors.Is(err, errChanged) {
			return provisioners.Instance{}, mayExist(err)
		}
		k := s.instanceKey()
		s, err = c.api.getRecord(ctx, k.namespace, k.name)
		switch {
		case err != nil:
			return provisioners.Instance{}, mayExist(err)
		case s == nil || s.instanceKey() != k:
			return provisioners.Instance{}, mayExist(errChanged)
		case s.PodUID == pod.UID:
			return c.reconcileRecord(ctx, k)
		case s.Ended || s.PodUID != "":
			if err := c.api.deletePod(ctx, pod); err != nil {
				return provisioners.Instance{}, mayExist(err)
			}
			return c.reconcileRecord(ctx, k)
		}
	}
	return provisioners.Instance{}, mayExist(errChanged)
}

// mayExist is the failure of a call after the pod was made.
func mayExist(err error) error {
	return &provisioners.Error{Kind: provisioners.KindUnknown,
		Message: "the placeholder was made, and not all that belongs to it", Err: err}
}

// deletePod deletes this very pod.
func (a api) deletePod(ctx context.Context, pod *corev1.Pod) error {
	err := a.core.Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err == nil || isNotFound(err, pod.Name) || apierrors.IsConflict(err) { // a conflict is another pod's uid
		return nil
	}
	return readError(err, "deleting pod %s/%s", pod.Namespace, pod.Name)
}
