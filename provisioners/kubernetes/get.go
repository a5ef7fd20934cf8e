//go:build clouds

package kubernetes

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// Get returns the machine as it is now. What it says for the first time (that
// the machine can be used, or has ended) it writes into the record before.
func (c *Cluster) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	k, ok := parseID(id)
	if !ok {
		return provisioners.Instance{}, notFound(id)
	}
	return c.reconcileRecord(ctx, k)
}

func notFound(id string) error {
	return provisioners.Errorf(provisioners.KindNotFound, "no machine %q", id)
}

// reconcileRecord looks at the machine until its record has nothing new to say.
func (c *Cluster) reconcileRecord(ctx context.Context, k key) (provisioners.Instance, error) {
	for range attempts {
		s, err := c.observe(ctx, k)
		switch {
		case err != nil:
			return provisioners.Instance{}, err
		case s.isEmpty():
			return provisioners.Instance{}, notFound(k.instanceID())
		case s.isAbandoned():
			if err := c.deletePlaceholder(ctx, s); err != nil {
				return provisioners.Instance{}, err
			}
			continue
		}
		next, changed := s.nextRecord(c.clock.Now())
		if !changed {
			return c.renderWithNotice(s), nil
		}
		if err := c.api.updateRecord(ctx, s.record, next); err != nil && !errors.Is(err, errChanged) {
			return provisioners.Instance{}, err
		}
	}
	return provisioners.Instance{}, provisioners.Errorf(provisioners.KindTransient, "machine %s kept changing",
		k.instanceID())
}

// deletePlaceholder removes the placeholder of a machine that was given up.
func (c *Cluster) deletePlaceholder(ctx context.Context, s seen) error {
	if err := c.api.deleteRequest(ctx, s); err != nil {
		return err
	}
	return c.api.deletePod(ctx, s.pod)
}

// renderWithNotice adds what the node announces to the machine. A machine that the adapter
// gave up says why.
func (c *Cluster) renderWithNotice(s seen) provisioners.Instance {
	i := s.portInstance()
	switch {
	case i.Phase == provisioners.Running:
		i.Notice = c.noticeOf(s)
		return i
	case s.record != nil && s.record.GivenUp:
		i.Notice = interruptionNotice(s.record.Reason)
	}
	c.shortSince(s.key, false, time.Time{})
	return i
}

// observe reads everything that says how the machine is.
func (c *Cluster) observe(ctx context.Context, k key) (seen, error) {
	s, err := c.api.readPair(ctx, k)
	if err != nil || s.record == nil {
		return s, err
	}
	if err := c.lookAtNode(ctx, &s); err != nil {
		return s, err
	}
	switch {
	case s.hasEnded():
	case !s.hasPlaceholder() && s.record.Place != nil && !s.nodeGone:
		s.work, err = c.hasUserPod(ctx, s)
	case awaitsNode(s):
		s.refusal, err = c.scaleUpRefusal(ctx, s)
		if s.refusal != "" {
			c.ranOut(s.record.Spec)
		}
	case s.node != nil && s.record.Place == nil && containersRunning(s.pod):
		s.devices, err = c.api.probeDevices(ctx, s)
	}
	return s, err
}

func awaitsNode(s seen) bool { return s.hasPlaceholder() && s.pod.Spec.NodeName == "" }

// readPair reads the machine's two objects. The record is read first: a pod that is
// missing afterwards was gone, or its Create has not got there yet.
func (a api) readPair(ctx context.Context, k key) (seen, error) {
	s := seen{key: k}
	known, err := a.getRecord(ctx, k.namespace, k.name)
	if err != nil {
		return s, err
	}
	if known != nil && known.instanceKey() == k {
		s.record = known
	}
	pod, err := a.core.Pods(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
	switch {
	case isNotFound(err, k.name):
	case err != nil:
		return s, readError(err, "reading pod %s/%s", k.namespace, k.name)
	case isPlaceholderOf(pod, k.uid):
		s.pod = pod
	}
	return s, nil
}

// lookAtNode reads the node that the machine is on.
func (c *Cluster) lookAtNode(ctx context.Context, s *seen) error {
	name := s.nodeName()
	if name == "" || s.hasEnded() {
		return nil
	}
	node, err := c.api.getNode(ctx, name)
	if err == nil {
		c.recordPlace(s, node)
	}
	return err
}

// getNode reads a node; nil when there is none of the name.
func (a api) getNode(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := a.core.Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case isNotFound(err, name):
		return nil, nil
	case err != nil:
		return nil, readError(err, "reading node %s", name)
	}
	return node, nil
}

func (s seen) nodeName() string {
	switch {
	case s.record != nil && s.record.Place != nil:
		return s.record.Place.Node
	case s.pod != nil:
		return s.pod.Spec.NodeName
	}
	return ""
}

// recordPlace says where the machine is. A new node of the same name is another node.
func (c *Cluster) recordPlace(s *seen, node *corev1.Node) {
	if node == nil || s.record.Place != nil && s.record.Place.UID != node.UID {
		s.nodeGone = true
		return
	}
	s.node, s.address = node, node.Name
	for _, a := range node.Status.Addresses {
		if c.config.Address == AddressInternalIP && a.Type == corev1.NodeInternalIP {
			s.address = a.Address
			return
		}
	}
}

// hasUserPod looks for a pod of the machine's user on its node.
func (c *Cluster) hasUserPod(ctx context.Context, s seen) (bool, error) {
	for _, namespace := range c.config.workNamespaces() {
		pods, complete, err := c.api.listPods(ctx, namespace, labelNode+"="+s.record.Spec.NodeID)
		if err != nil {
			return false, err
		}
		for _, pod := range pods {
			if s.takesOver(&pod) {
				return true, nil
			}
		}
		if !complete { // what was not read may be what holds the machine
			return true, nil
		}
	}
	return false, nil
}

// workNamespaces are the configured ones, as the API has them.
func (c Config) workNamespaces() []string {
	namespaces := make([]string, len(c.WorkNamespaces))
	for i, namespace := range c.WorkNamespaces {
		namespaces[i] = strings.Replace(namespace, everywhere, metav1.NamespaceAll, 1)
	}
	return namespaces
}
