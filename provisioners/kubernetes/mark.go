//go:build clouds

package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// A mark is the version of a list of all pods, of one cluster. What is in the next list is
// seen there; a pod that was deleted before it is seen by a watch from the mark on. The
// API server knows the changes of some minutes, and says so when it has forgotten them.
type mark struct {
	cluster string // a hash of the cluster's identity; empty: not known
	version uint64 // 0: of the zero mark
}

var markPattern = regexp.MustCompile(`^kube1-(?:([0-9a-f]{12})-)?([1-9][0-9]{0,18})$`)

// portMark renders the mark.
func (m mark) portMark() provisioners.Mark {
	if m.cluster == "" {
		return provisioners.Mark(fmt.Sprintf("kube1-%d", m.version))
	}
	return provisioners.Mark(fmt.Sprintf("kube1-%s-%d", m.cluster, m.version))
}

// parseMark reads a mark.
func parseMark(text provisioners.Mark) (mark, error) {
	if text == "" {
		return mark{}, nil
	}
	parts := markPattern.FindStringSubmatch(string(text))
	if parts == nil {
		return mark{}, foreignMark(text)
	}
	version, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return mark{}, foreignMark(text)
	}
	return mark{parts[1], version}, nil
}

func foreignMark(text provisioners.Mark) error {
	return &provisioners.Error{Kind: provisioners.KindBadSpec, Message: fmt.Sprintf("reading the mark %.40q", text),
		Err: provisioners.ErrForeignMark}
}

// isOfAnother reports whether the mark is for sure of another cluster.
func (m mark) isOfAnother(cluster string) bool {
	return m.version > 0 && m.cluster != "" && cluster != "" && m.cluster != cluster
}

// clusterHash identifies the cluster: by the namespace that is made with it, lives as long,
// and is another object in every other cluster. It is empty where that may not be read.
func (e *eyes) clusterHash(ctx context.Context) (string, error) {
	namespace, err := e.api().core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err), isNotFound(err, metav1.NamespaceSystem):
		return "", nil
	case err != nil:
		return "", readError(err, "reading which cluster it is")
	}
	sum := sha256.Sum256([]byte(namespace.UID))
	return hex.EncodeToString(sum[:])[:12], nil
}
