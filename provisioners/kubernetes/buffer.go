//go:build clouds

package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/forewarm/forewarm/provisioners"
)

// A buffer is a CapacityBuffer with one replica for each node that is to stay idle, of
// one owner and one offer. The autoscaler boots nodes until that many would find their
// place, and removes none of those. A kept node that has work counts for none: with it
// the autoscaler would boot another one in its place.
//
// A CapacityBuffer has no end. It is owned by a guard, which has one.

// buffer names the objects of one buffer.
type buffer struct {
	spec     spec // its owner, type and region
	template corev1.PodTemplateSpec
	name     string
	labels   map[string]string
}

const bufferPrefix = "forewarm-buffer-"

// bufferKeeper makes buffers, and sizes them.
type bufferKeeper struct {
	*eyes
	claims claims
	guards guardKeeper
}

// ofBuffer is what the keepings of one buffer have in common.
func (s spec) ofBuffer() spec { return spec{Type: s.Type, Region: s.Region, Owner: s.Owner} }

// bufferOf is the buffer of the keeping. Its name has its shape in it: one of another shape
// is another buffer, and the old one ends with its guard.
func (k bufferKeeper) bufferOf(s spec) (buffer, error) {
	offer, err := k.config().findOffer(provisioners.Spec{Type: s.Type, Region: s.Region})
	if err != nil {
		return buffer{}, err
	}
	b := buffer{spec: s.ofBuffer(), template: k.config().bufferTemplate(offer)}
	text, err := json.Marshal([]any{b.spec, b.template})
	if err != nil {
		return buffer{}, fmt.Errorf("rendering the shape of a buffer: %w", err)
	}
	sum := sha256.Sum256(text)
	b.name = bufferPrefix + hex.EncodeToString(sum[:])[:hashLength]
	b.labels = instanceLabels(b.spec, roleBuffer)
	delete(b.labels, labelNode)
	return b, nil
}

// warmByBuffer adds a replica. What is refused before the record says so has made nothing.
func (o *Observed) warmByBuffer(ctx context.Context, s *stored, node *corev1.Node) (provisioners.Instance, error) {
	b, err := o.buffers.bufferOf(s.Spec)
	if err == nil {
		err = o.buffers.ensureBuffer(ctx, b)
	}
	if err != nil {
		if node != nil && provisioners.Final(err) {
			err = errors.Join(err, o.claims.releaseNode(ctx, s, node.UID))
		}
		return provisioners.Instance{}, err
	}
	until := o.keepUntil(node != nil)
	next := func(r record) record {
		r.Way, r.KeptUntil = WarmBuffer, until
		return r.placedOn(node, o.cluster)
	}
	made, err := o.recordWarming(ctx, s, next, func() error { return nil })
	if err != nil {
		return provisioners.Instance{}, err
	}
	if err := o.buffers.sizeBuffer(ctx, s.Spec, &keepLook{eyes: o.eyes}); err != nil {
		return provisioners.Instance{}, mayExist(err)
	}
	return made, nil
}

// ensureBuffer makes the guard, the shape and the buffer, without a replica, where they
// are not there.
func (k bufferKeeper) ensureBuffer(ctx context.Context, b buffer) error {
	objects, err := k.objects(ctx)
	if err != nil {
		return err
	}
	made, err := k.guards.ensureGuard(ctx, guard{name: b.name, labels: b.labels, template: b.template})
	if err != nil {
		return err
	}
	owned := metav1.ObjectMeta{Namespace: k.config().Namespace, Name: b.name, Labels: b.labels,
		OwnerReferences: []metav1.OwnerReference{guardedBy(made)}}
	shape := owned
	shape.Name += "-" + string(made.GetUID()) // that of an earlier guard may be about to be collected
	_, err = k.api().core.PodTemplates(owned.Namespace).Create(ctx,
		&corev1.PodTemplate{ObjectMeta: shape, Template: b.template}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return writeError(err, "making PodTemplate %s/%s", owned.Namespace, shape.Name)
	}
	kind, _, err := k.findKind(ctx, bufferKind)
	if err != nil {
		return err
	}
	_, err = objects.Create(ctx, newBuffer(kind.GroupVersion().String(), owned, shape.Name), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return checkGuarded(ctx, objects, owned)
	case err != nil:
		return writeError(err, "making CapacityBuffer %s/%s", owned.Namespace, b.name)
	}
	return nil
}

// checkGuarded returns an error for a buffer of an earlier guard, which is about to be
// collected.
func checkGuarded(ctx context.Context, objects dynamic.ResourceInterface, owned metav1.ObjectMeta) error {
	there, err := objects.Get(ctx, owned.Name, metav1.GetOptions{})
	if err != nil {
		return readError(err, "reading CapacityBuffer %s", owned.Name)
	}
	for _, owner := range there.GetOwnerReferences() {
		if owner.UID == owned.OwnerReferences[0].UID {
			return nil
		}
	}
	return provisioners.Errorf(provisioners.KindTransient, "CapacityBuffer %s is of an earlier guard", owned.Name)
}

// newBuffer is a CapacityBuffer of the template.
func newBuffer(version string, owned metav1.ObjectMeta, template string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": "CapacityBuffer",
		"spec": map[string]any{"podTemplateRef": map[string]any{"name": template}, "replicas": int64(0)},
	}}
	made.SetNamespace(owned.Namespace)
	made.SetName(owned.Name)
	made.SetLabels(owned.Labels)
	made.SetOwnerReferences(owned.OwnerReferences)
	return made
}

// sizeBuffer gives the buffer as many replicas as its keepings need, and removes it where
// it has none.
func (k bufferKeeper) sizeBuffer(ctx context.Context, s spec, look *keepLook) error {
	b, err := k.bufferOf(s)
	if err != nil {
		return err
	}
	lives, idle, err := k.countBuffered(ctx, b.spec, look)
	switch {
	case err != nil:
		return err
	case lives == 0:
		return k.removeBuffer(ctx, b)
	}
	objects, err := k.objects(ctx)
	if err != nil {
		return err
	}
	now, err := k.readBuffer(ctx, b, objects)
	if err != nil {
		return err
	}
	if replicas, _, _ := unstructured.NestedInt64(now.Object, "spec", "replicas"); replicas == int64(idle) {
		return nil
	}
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, idle)
	if _, err := objects.Patch(ctx, b.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return readError(err, "sizing CapacityBuffer %s", b.name)
	}
	return nil
}

// objects are the CapacityBuffers of our namespace, in the version that is served.
func (k bufferKeeper) objects(ctx context.Context) (dynamic.ResourceInterface, error) {
	kind, has, err := k.findKind(ctx, bufferKind)
	switch {
	case err != nil:
		return nil, err
	case !has:
		return nil, provisioners.Errorf(provisioners.KindBadSpec, "the cluster has no CapacityBuffer any more")
	}
	return k.api().open.Resource(kind).Namespace(k.config().Namespace), nil
}

// readBuffer reads the buffer, and makes it where it has ended.
func (k bufferKeeper) readBuffer(ctx context.Context, b buffer, objects dynamic.ResourceInterface) (
	*unstructured.Unstructured, error) {
	now, err := objects.Get(ctx, b.name, metav1.GetOptions{})
	if isNotFound(err, b.name) {
		if err := k.ensureBuffer(ctx, b); err != nil {
			return nil, err
		}
		now, err = objects.Get(ctx, b.name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, readError(err, "reading CapacityBuffer %s", b.name)
	}
	return now, nil
}

// countBuffered counts the living keepings of a buffer, and those of them whose node, once
// it has come, has no work.
func (k bufferKeeper) countBuffered(ctx context.Context, s spec, look *keepLook) (lives, idle int, err error) {
	records, err := k.cluster.readRecords(ctx, labelOwner+"="+s.Owner+","+labelType+"="+s.Type+",")
	if err != nil {
		return 0, 0, err
	}
	if !records.whole {
		return 0, 0, provisioners.Errorf(provisioners.KindTransient, "the list of the buffer's keepings is cut")
	}
	for _, r := range records.all {
		if r.Way != WarmBuffer || r.Spec.ofBuffer() != s || !k.isLive(r) {
			continue
		}
		lives++
		busy := false
		if r.Place != nil {
			if busy, err = k.hasWork(ctx, r.Place, look); err != nil {
				return 0, 0, err
			}
		}
		if !busy {
			idle++
		}
	}
	return lives, idle, nil
}

// hasWork reports whether others have taken the node, with GPUs or without.
func (e *eyes) hasWork(ctx context.Context, at *place, look *keepLook) (bool, error) {
	v, err := look.get(ctx)
	if err != nil {
		return false, err
	}
	for i := range v.nodes {
		if node := &v.nodes[i]; node.UID == at.UID {
			return e.isTaken(node, v.useOf(at.Node)), nil
		}
	}
	return false, nil
}

// removeBuffer removes the buffer, and with its guard what else belongs to it.
func (k bufferKeeper) removeBuffer(ctx context.Context, b buffer) error {
	objects, err := k.objects(ctx)
	if err == nil {
		err = objects.Delete(ctx, b.name, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		err = readError(err, "removing CapacityBuffer %s", b.name)
	} else {
		err = nil
	}
	return errors.Join(err, k.guards.removeGuard(ctx, b.name))
}

// keepBuffer moves the end of the guard, and sizes the buffer.
func (k bufferKeeper) keepBuffer(ctx context.Context, s spec, look *keepLook) error {
	b, err := k.bufferOf(s)
	if err != nil {
		return err
	}
	return errors.Join(k.guards.renewGuard(ctx, b.name), k.sizeBuffer(ctx, s, look))
}

// mostSaid bounds what is told of a buffer's conditions, in bytes.
const mostSaid = 500

// saidOf is what the autoscaler says of the buffer, in its own words.
func (k bufferKeeper) saidOf(ctx context.Context, s spec) (string, error) {
	b, err := k.bufferOf(s)
	if err != nil {
		return "", err
	}
	objects, err := k.objects(ctx)
	if err != nil {
		return "", err
	}
	now, err := objects.Get(ctx, b.name, metav1.GetOptions{})
	if err != nil && !isNotFound(err, b.name) {
		return "", readError(err, "reading CapacityBuffer %s", b.name)
	}
	var said []string
	if err == nil {
		for _, c := range conditionsOf(now) {
			said = append(said, fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Message))
		}
	}
	if len(said) == 0 {
		return "nothing is said of its CapacityBuffer; if no controller serves the kind, set warm_with: placeholder", nil
	}
	words := strings.Join(said, "; ")
	return strings.ToValidUTF8(words[:min(len(words), mostSaid)], ""), nil
}

// findBuffered claims a free node for a keeping that waits for one.
func (k bufferKeeper) findBuffered(ctx context.Context, s seen) (*corev1.Node, error) {
	offer, err := k.config().findOffer(provisioners.Spec{Type: s.record.Spec.Type, Region: s.record.Spec.Region})
	if err != nil {
		return nil, err
	}
	v, err := k.lookAround(ctx)
	if err != nil {
		return nil, err
	}
	return k.claims.claimFree(ctx, v, s.record, offer)
}
