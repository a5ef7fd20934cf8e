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
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/provisioners"
)

// record is what the cluster remembers of one token.
//
// It only ever goes forward: asked (no PodUID), made, and ended. Whoever says
// that a machine has ended writes so first, so that a late duplicate of its
// Create, which looks here before and after it makes a pod, cannot bring it back.
type record struct {
	Token string `json:"token"`
	Spec  spec   `json:"spec"`
	Want  want   `json:"want"`
	// PodUID is the placeholder; it is empty until its creation was answered.
	PodUID    types.UID `json:"pod_uid,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"` // the placeholder's
	// Place and Devices are known from when the machine was first usable.
	Place   *place    `json:"place,omitempty"`
	Devices []device  `json:"devices,omitempty"`
	Ended   bool      `json:"ended,omitempty"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	// GivenUp says that the adapter ended it by itself, so that nobody else will
	// remove its placeholder.
	GivenUp bool `json:"given_up,omitempty"`
	// ForgetAt is when the record may go; zero until the end.
	ForgetAt time.Time `json:"forget_at,omitzero"`
	Reason   string    `json:"reason,omitempty"` // why it ended, for people
	// Way is by what an observer warms the node; empty until that was asked for, and of
	// machines that are no observer's. KeptUntil is when the keeping ends by itself.
	Way       WarmWith  `json:"way,omitempty"`
	KeptUntil time.Time `json:"kept_until,omitzero"`
}

type spec struct {
	Type   string `json:"type"`
	Region string `json:"region,omitempty"`
	Owner  string `json:"owner"`
	NodeID string `json:"node_id"`
}

// want is what of the offer a standing machine is judged by. It is kept, so that
// a changed configuration does not change machines that exist.
type want struct {
	Resource  string `json:"resource"`
	GPUs      int    `json:"gpus"`
	Model     string `json:"model"`
	MemoryMiB int    `json:"memory_mib"`
	Probe     Probe  `json:"probe"`
	Request   bool   `json:"provisioning_request,omitempty"`
}

type place struct {
	Node    string    `json:"node"`
	UID     types.UID `json:"uid"`
	Address string    `json:"address"`
}

type device struct {
	UUID      string `json:"uuid"`
	Index     int    `json:"index"`
	MemoryMiB int    `json:"memory_mib"`
}

func (r record) portDevices() []capacity.Device {
	devices := make([]capacity.Device, len(r.Devices))
	for i, d := range r.Devices {
		devices[i] = capacity.Device{UUID: d.UUID, Index: d.Index, Model: r.Want.Model, MemoryMiB: d.MemoryMiB}
	}
	return devices
}

// remembered is how long a record stays after its machine's end: the contract
// says a day at least.
const remembered = 48 * time.Hour

// ended returns the record of a machine that is over. at is when it was, zero when
// nobody can say.
func (r record) ended(at, now time.Time, reason string) record {
	if r.Ended {
		return r
	}
	r.Ended, r.EndedAt, r.ForgetAt, r.Reason = true, at.UTC(), now.Add(remembered), reason
	return r
}

// giveUp returns the record of a machine that the adapter ends by itself.
func (r record) giveUp() record {
	r.GivenUp = true
	return r
}

// stored is a record with the object that holds it.
type stored struct {
	record
	object *corev1.ConfigMap
}

func (s *stored) instanceKey() key { return key{s.object.Namespace, s.object.Name, s.object.UID} }

const dataKey = "machine.json"

var errRecord = errors.New("the record cannot be read")

// parseRecord reads a record from its object. An object that another program or a
// person has damaged is an error, never an empty record.
func parseRecord(object *corev1.ConfigMap) (*stored, error) {
	s := &stored{object: object}
	if err := json.Unmarshal([]byte(object.Data[dataKey]), &s.record); err != nil {
		return nil, fmt.Errorf("%w: %s/%s: %w", errRecord, object.Namespace, object.Name, err)
	}
	if s.Token == "" || nameOf(s.Token) != object.Name || s.Spec.Owner == "" ||
		s.Spec.Owner != object.Labels[labelOwner] {
		return nil, fmt.Errorf("%w: %s/%s: token or owner do not belong to it", errRecord, object.Namespace,
			object.Name)
	}
	return s, nil
}

func (r record) marshal() (map[string]string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("rendering a record: %w", err)
	}
	return map[string]string{dataKey: string(text)}, nil
}

// getRecord reads a record; nil when the API server says that there is none.
func (a api) getRecord(ctx context.Context, namespace, name string) (*stored, error) {
	object, err := a.core.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case isNotFound(err, name):
		return nil, nil
	case err != nil:
		return nil, readError(err, "reading record %s/%s", namespace, name)
	}
	if object.Labels[labelRole] != a.role {
		return nil, nil // somebody else's
	}
	s, err := parseRecord(object)
	if err != nil {
		return nil, provisioners.Errorf(provisioners.KindTransient, "%v", err)
	}
	return s, nil
}

// errChanged is the failure of a write to a record that somebody else has
// changed or removed since it was read.
var errChanged = errors.New("the record has changed")

// updateRecord writes the record where nobody has changed it, and puts it into s.
func (a api) updateRecord(ctx context.Context, s *stored, next record) error {
	data, err := next.marshal()
	if err != nil {
		return err
	}
	object := s.object.DeepCopy()
	object.Data = data
	written, err := a.core.ConfigMaps(object.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err), isNotFound(err, object.Name):
		return errChanged
	case err != nil:
		return readError(err, "writing record %s/%s", object.Namespace, object.Name)
	}
	s.record, s.object = next, written
	return nil
}

// writeRecord makes the record of a token. It fails with AlreadyExists where one is.
func (c *Cluster) writeRecord(ctx context.Context, r record) (*stored, error) {
	data, err := r.marshal()
	if err != nil {
		return nil, err
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.config.Namespace, Name: nameOf(r.Token),
			Labels: instanceLabels(r.Spec, c.api.role)},
		Data: data,
	}
	written, err := c.api.core.ConfigMaps(c.config.Namespace).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &stored{r, written}, nil
}

func instanceLabels(s spec, role string) map[string]string {
	return map[string]string{
		labelManager: manager, labelOwner: s.Owner, labelNode: s.NodeID, labelType: s.Type, labelRole: role,
	}
}
