//go:build clouds

package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/forewarm/forewarm/provisioners"
)

// A claim is the Lease by which a node is in keeping once: it is named after the node, so
// that the API server refuses the second one, and owned by the record that keeps the
// node. One that was left behind, by a record that has ended, is taken away.

// claims takes nodes into keeping, and lets them go.
type claims struct{ *eyes }

const claimPrefix = "forewarm-node-"

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

func (c claims) objects() dynamic.ResourceInterface {
	return c.api().open.Resource(leases).Namespace(c.config().Namespace)
}

// claimName is the name of the claim of a node. A node that comes back under the name of
// another one is another node.
func claimName(node types.UID) string {
	sum := sha256.Sum256([]byte(node))
	return claimPrefix + hex.EncodeToString(sum[:])[:hashLength]
}

// claimNode takes the node for the record. It is false when another record has it.
func (c claims) claimNode(ctx context.Context, s *stored, node *corev1.Node) (bool, error) {
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": leases.GroupVersion().String(), "kind": "Lease",
		"spec": map[string]any{"holderIdentity": s.object.Name},
	}}
	claim.SetName(claimName(node.UID))
	claim.SetLabels(instanceLabels(s.Spec, roleClaim))
	claim.SetAnnotations(map[string]string{corev1.LabelHostname: node.Name})
	claim.SetOwnerReferences([]metav1.OwnerReference{ownedBy(s)})
	for range attempts {
		_, err := c.objects().Create(ctx, claim, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			if err != nil {
				return false, writeError(err, "claiming node %s", node.Name)
			}
			return true, nil
		}
		owner, err := c.claimOwner(ctx, claim.GetName())
		if err != nil || owner != "" {
			return owner == s.object.UID, err
		}
	}
	return false, provisioners.Errorf(provisioners.KindTransient, "the claim of node %s kept changing", node.Name)
}

// claimOwner is the living record that has the claim. It removes a claim that none has,
// and returns nothing.
func (c claims) claimOwner(ctx context.Context, name string) (types.UID, error) {
	claim, err := c.readClaim(ctx, name)
	if err != nil || claim == nil {
		return "", err
	}
	owner := claim.GetOwnerReferences()[0]
	s, err := c.api().getRecord(ctx, c.config().Namespace, owner.Name)
	if err != nil {
		return "", err
	}
	if s != nil && s.object.UID == owner.UID && c.isLive(s) {
		return owner.UID, nil
	}
	return "", c.deleteClaim(ctx, claim)
}

// readClaim reads a claim; nil when there is none.
func (c claims) readClaim(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	claim, err := c.objects().Get(ctx, name, metav1.GetOptions{})
	switch {
	case isNotFound(err, name):
		return nil, nil
	case err != nil:
		return nil, readError(err, "reading the claim %s", name)
	case claim.GetLabels()[labelRole] != roleClaim || len(claim.GetOwnerReferences()) != 1:
		return nil, provisioners.Errorf(provisioners.KindTransient, "Lease %s/%s is no claim of ours",
			c.config().Namespace, name)
	}
	return claim, nil
}

func (c claims) deleteClaim(ctx context.Context, claim *unstructured.Unstructured) error {
	err := c.objects().Delete(ctx, claim.GetName(),
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.GetUID()))})
	if err == nil || isNotFound(err, claim.GetName()) || apierrors.IsConflict(err) {
		return nil
	}
	return readError(err, "removing the claim %s", claim.GetName())
}

// releaseNode removes the record's claim of the node, and no other's.
func (c claims) releaseNode(ctx context.Context, s *stored, node types.UID) error {
	claim, err := c.readClaim(ctx, claimName(node))
	if err != nil || claim == nil || claim.GetOwnerReferences()[0].UID != s.object.UID {
		return err
	}
	return c.deleteClaim(ctx, claim)
}

// claimFree claims the first free node that nobody else takes meanwhile; nil where there
// is none.
func (c claims) claimFree(ctx context.Context, v clusterView, s *stored, offer Offer) (*corev1.Node, error) {
	for _, node := range c.freeNodes(v, offer) {
		if took, err := c.claimNode(ctx, s, node); took || err != nil {
			return node, err
		}
	}
	return nil, nil
}
