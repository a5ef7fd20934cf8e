//go:build clouds

package kubernetes

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// watchSeconds is for how long the changes since a mark are read at most. An API
	// server says where it is two seconds before the end.
	watchSeconds = 3
	// tellsWithin is within what time, once the list is read, an API server says where it is
	// if it has anything new to say: 0.75 to 2.25 s after the watch began.
	tellsWithin = 2250 * time.Millisecond
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
	// settled says that it has told what is known of pods, also where that is behind the
	// version of the list. With an etcd before 3.4.25 watches go on with changes of pods
	// alone, lists have the version of all changes, and where nothing is new the watch is
	// silent to its end.
	settled bool
	read    int // how many changes
}

// changeReader reads the changes since a version while the list is read: an API server
// ends the watch of a client that lets it wait.
type changeReader struct {
	eyes  *eyes
	until chan uint64 // the version of the list, once
	over  chan pastChanges
	stop  func()
}

// startChanges begins to read. It is opened before the list is read, so that the API
// server tells the changes meanwhile.
func (e *eyes) startChanges(ctx context.Context, since uint64) (*changeReader, error) {
	past := pastChanges{deleted: map[types.UID]podView{}, told: since}
	changes, err := e.startWatch(ctx, since)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &changeReader{eyes: e, until: make(chan uint64, 1), over: make(chan pastChanges, 1), stop: cancel}
	go func() { r.over <- r.readAll(ctx, changes, past) }()
	return r, nil
}

// finish returns the changes up to the version of the list.
func (r *changeReader) finish(until uint64) pastChanges {
	r.until <- until
	past := <-r.over
	for uid, p := range past.deleted {
		if p.version > until { // the next look tells of it
			delete(past.deleted, uid)
		}
	}
	past.told = min(past.told, until)
	return past
}

// readAll reads one watch, and a second one where the first was over before the list was
// read.
func (r *changeReader) readAll(ctx context.Context, changes watch.Interface, past pastChanges) pastChanges {
	until := r.readWatch(ctx, changes, &past, 0)
	if until == 0 {
		select {
		case until = <-r.until:
		case <-ctx.Done():
			return past
		}
	}
	if past.lost || past.settled || past.told >= until {
		return past
	}
	changes, err := r.eyes.startWatch(ctx, past.told)
	if err != nil {
		return past // what was told until here is certain
	}
	r.readWatch(ctx, changes, &past, until)
	return past
}

// readWatch reads a watch until it was told everything before the version until, or that
// there is no more, or until no more comes. It returns that version, 0 while it is not known.
func (r *changeReader) readWatch(ctx context.Context, changes watch.Interface, past *pastChanges,
	until uint64) uint64 {
	if changes == nil {
		past.lost = true
		return until
	}
	defer changes.Stop()
	ripe, would := false, time.NewTimer(tellsWithin)
	defer would.Stop()
	for until == 0 || past.told < until && !past.settled {
		select {
		case until = <-r.until:
			would.Reset(tellsWithin)
		case <-ctx.Done():
			return until
		case <-would.C:
			ripe = true
		case event, more := <-changes.ResultChan():
			if !more {
				past.settled = ripe && until != 0
				return until
			}
			if !r.eyes.addChange(past, event) {
				return until
			}
			past.settled = event.Type == watch.Bookmark && until != 0
		}
	}
	return until
}

// addChange notes one change. It is false when the watch says nothing more that is certain.
func (e *eyes) addChange(past *pastChanges, event watch.Event) bool {
	past.read++
	if event.Type == watch.Error || past.read > mostChanges {
		past.lost = true
		return false
	}
	pod, is := event.Object.(*corev1.Pod)
	if !is {
		return true
	}
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		return false
	}
	past.told = version
	if event.Type == watch.Deleted {
		if p := e.config().viewPod(pod); p.isWork() {
			past.deleted[p.uid] = p.asDeleted(pod)
		}
	}
	return true
}

// startWatch has the changes since the version told; nil where they are forgotten.
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
