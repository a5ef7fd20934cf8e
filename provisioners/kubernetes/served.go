//go:build clouds

package kubernetes

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isUnserved reports whether no controller acts on the buffer of the keeping: where it is
// for us to choose what warms, and the buffer has no condition a while after it was made.
// A cluster may have the kind without the controller's gate.
func (k bufferKeeper) isUnserved(ctx context.Context, s spec) (bool, error) {
	if k.config().WarmWith != WarmAuto {
		return false, nil
	}
	if known := k.knownServed(); known != nil {
		return !*known, nil
	}
	b, err := k.bufferOf(s)
	if err != nil {
		return false, nil // of an offer that is not configured any more
	}
	objects, err := k.objects(ctx)
	if err != nil {
		return false, err
	}
	there, err := objects.Get(ctx, b.name, metav1.GetOptions{})
	switch {
	case isNotFound(err, b.name):
		return false, nil
	case err != nil:
		return false, readError(err, "reading CapacityBuffer %s", b.name)
	}
	served := len(conditionsOf(there)) > 0
	if !served && k.now().Sub(there.GetCreationTimestamp().Time) < patience {
		return false, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.buffersServed = &served
	return !served, nil
}

func (e *eyes) knownServed() *bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.buffersServed
}

// knowsUnserved reports whether a buffer was found that nobody serves. It is forgotten by a
// restart, which finds out again.
func (e *eyes) knowsUnserved() bool {
	known := e.knownServed()
	return known != nil && !*known
}
