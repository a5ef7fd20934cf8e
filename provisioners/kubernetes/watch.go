//go:build clouds

package kubernetes

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/forewarm/forewarm/provisioners"
)

// A mark is the version of a list of all pods. What is in the next list is seen there; a
// pod that was deleted before it is seen by a watch from the mark on. The API server
// knows the changes of some minutes, and says so when it has forgotten them.
var markPattern = regexp.MustCompile(`^kube1-([1-9][0-9]{0,18})$`)

func markOf(version string) provisioners.Mark { return provisioners.Mark("kube1-" + version) }

// parseMark returns the version of a mark; 0 for the zero mark.
func parseMark(mark provisioners.Mark) (uint64, error) {
	if mark == "" {
		return 0, nil
	}
	parts := markPattern.FindStringSubmatch(string(mark))
	if parts == nil {
		return 0, foreignMark(mark)
	}
	version, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return 0, foreignMark(mark)
	}
	return version, nil
}

func foreignMark(mark provisioners.Mark) error {
	return &provisioners.Error{Kind: provisioners.KindBadSpec, Message: fmt.Sprintf("reading the mark %.40q", mark),
		Err: provisioners.ErrForeignMark}
}

const (
	// watchSeconds is for how long the changes since a mark are read at most. An API
	// server says where it is two seconds before the end.
	watchSeconds = 3
	// mostChanges bounds what one look reads of them.
	mostChanges = 200_000
)

// pastChanges is what a watch showed.
type pastChanges struct {
	// deleted are the pods with GPUs that were deleted, as they were last.
	deleted map[types.UID]podView
	// lost says that the API server has forgotten changes since the mark, or did not tell
	// all of them.
	lost bool
	// told is up to which version it told them for sure.
	told uint64
}

// startWatch has the changes since the version told. It is opened before the list is
// read, so that the API server tells them meanwhile.
func (e *eyes) startWatch(ctx context.Context, since uint64) (watch.Interface, error) {
	changes, err := e.api().core.Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{
		ResourceVersion: strconv.FormatUint(since, 10), AllowWatchBookmarks: true,
		TimeoutSeconds: pointerTo[int64](watchSeconds),
	})
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return nil, nil
	case err != nil:
		return nil, readError(err, "watching pods since version %d", since)
	}
	return changes, nil
}

// readChanges reads changes until the version of the list, or until no more come.
func (e *eyes) readChanges(changes watch.Interface, since, until uint64) pastChanges {
	past := pastChanges{deleted: map[types.UID]podView{}, told: since}
	if changes == nil {
		past.lost = true
		return past
	}
	defer changes.Stop()
	for range mostChanges {
		event, more := <-changes.ResultChan()
		if !more {
			return past
		}
		if event.Type == watch.Error {
			past.lost = true
			return past
		}
		pod, is := event.Object.(*corev1.Pod)
		if !is {
			continue
		}
		version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
		switch {
		case err != nil:
			return past
		case version > until: // everything before it was told
			past.told = until
			return past
		}
		past.told = version
		if event.Type == watch.Deleted {
			if p := e.config().viewPod(pod); p.isWork() {
				past.deleted[p.uid] = p.asDeleted(pod)
			}
		}
		if version == until {
			return past
		}
	}
	past.lost = true
	return past
}

// asDeleted gives a pod that is gone its end: that of its containers, or else when it was
// to be over.
func (v podView) asDeleted(pod *corev1.Pod) podView {
	v.finished = true
	if v.ended.IsZero() {
		v.ended = finishedAt(pod)
	}
	if v.ended.IsZero() && pod.DeletionTimestamp != nil {
		v.ended = pod.DeletionTimestamp.UTC()
	}
	return v
}
