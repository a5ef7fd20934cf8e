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
	return c.settle(ctx, k)
}

func notFound(id string) error {
	return provisioners.Errorf(provisioners.KindNotFound, "no machine %q", id)
}

// settle looks at the machine until its record has nothing new to say.
func (c *Cluster) settle(ctx context.Context, k key) (provisioners.Instance, error) {
	for range attempts {
		s, err := c.look(ctx, k)
		switch {
		case err != nil:
			return provisioners.Instance{}, err
		case s.nothing():
			return provisioners.Instance{}, notFound(k.id())
		case s.abandoned():
			if err := c.retract(ctx, s); err != nil {
				return provisioners.Instance{}, err
			}
			continue
		}
		next, changed := s.next(c.clock.Now())
		if !changed {
			return c.render(s), nil
		}
		if err := c.save(ctx, s.record, next); err != nil && !errors.Is(err, errChanged) {
			return provisioners.Instance{}, err
		}
	}
	return provisioners.Instance{}, provisioners.Errorf(provisioners.KindTransient, "machine %s kept changing", k.id())
}

// retract removes the placeholder of a machine that was given up.
func (c *Cluster) retract(ctx context.Context, s seen) error {
	if err := c.withdraw(ctx, s); err != nil {
		return err
	}
	return c.evict(ctx, s.pod)
}

// render adds what the node announces to the machine. A machine that the adapter
// gave up says why.
func (c *Cluster) render(s seen) provisioners.Instance {
	i := s.instance()
	switch {
	case i.Phase == provisioners.Running:
		i.Notice = c.notice(s)
		return i
	case s.record != nil && s.record.GivenUp:
		i.Notice = interruption(s.record.Reason)
	}
	c.shortSince(s.key, false, time.Time{})
	return i
}

// look reads everything that says how the machine is.
func (c *Cluster) look(ctx context.Context, k key) (seen, error) {
	s, err := c.pair(ctx, k)
	if err != nil || s.record == nil {
		return s, err
	}
	if err := c.lookAtNode(ctx, &s); err != nil {
		return s, err
	}
	switch {
	case s.ended():
	case !s.standing() && s.record.Place != nil && !s.nodeGone:
		s.work, err = c.worked(ctx, s)
	case waiting(s):
		s.refusal, err = c.refusal(ctx, s)
		if s.refusal != "" {
			c.ranOut(s.record.Spec)
		}
	case s.node != nil && s.record.Place == nil && started(s.pod):
		s.devices, err = c.probe(ctx, s)
	}
	return s, err
}

func waiting(s seen) bool { return s.standing() && s.pod.Spec.NodeName == "" }

// pair reads the machine's two objects. The record is read first: a pod that is
// missing afterwards was gone, or its Create has not got there yet.
func (c *Cluster) pair(ctx context.Context, k key) (seen, error) {
	s := seen{key: k}
	known, err := c.find(ctx, k.namespace, k.name)
	if err != nil {
		return s, err
	}
	if known != nil && known.key() == k {
		s.record = known
	}
	pod, err := c.api.core.Pods(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
	switch {
	case absent(err, k.name):
	case err != nil:
		return s, failed(err, "reading pod %s/%s", k.namespace, k.name)
	case of(pod, k.uid):
		s.pod = pod
	}
	return s, nil
}

// lookAtNode reads the node that the machine is on.
func (c *Cluster) lookAtNode(ctx context.Context, s *seen) error {
	name := s.nodeName()
	if name == "" || s.ended() {
		return nil
	}
	node, err := c.node(ctx, name)
	if err == nil {
		c.stand(s, node)
	}
	return err
}

// node reads a node; nil when there is none of the name.
func (c *Cluster) node(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := c.api.core.Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case absent(err, name):
		return nil, nil
	case err != nil:
		return nil, failed(err, "reading node %s", name)
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

// stand says where the machine is. A new node of the same name is another node.
func (c *Cluster) stand(s *seen, node *corev1.Node) {
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

// worked looks for a pod of the machine's user on its node.
func (c *Cluster) worked(ctx context.Context, s seen) (bool, error) {
	for _, namespace := range c.workNamespaces() {
		pods, complete, err := c.pods(ctx, namespace, labelNode+"="+s.record.Spec.NodeID)
		if err != nil {
			return false, err
		}
		for _, pod := range pods {
			if s.succeeds(&pod) {
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
func (c *Cluster) workNamespaces() []string {
	namespaces := make([]string, len(c.config.WorkNamespaces))
	for i, namespace := range c.config.WorkNamespaces {
		namespaces[i] = strings.Replace(namespace, everywhere, metav1.NamespaceAll, 1)
	}
	return namespaces
}
