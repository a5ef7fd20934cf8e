package slurm_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

// A job takes all of the node in the very second of a heartbeat, which waits for it then. It
// is that one that is ended: the one that follows keeps the node.
func TestTheHeartbeatThatWaitsForAJobIsEnded(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 1, nil)
	made := l.warm(t, "token-1")
	waiting, next := "", ""
	for next == "" {
		l.advanceClock(t, time.Second)
		require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
		waiting, next = l.beatsAhead(t)
	}
	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			if strconv.Itoa(j.ID) == waiting {
				j.Begin = w.Now.Add(time.Second)
			}
		}
	})
	job := l.submit(t, provisionertest.PlainWork{GPUs: 4, Nodes: 1, Whole: true})
	l.advanceClock(t, 2*time.Second)
	require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
	l.finish(t, job)
	still, none := l.beatsAhead(t)
	require.Equal(t, next, still)
	require.Empty(t, none)
	require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
}

// beatsAhead are the first two heartbeats that wait, by when they may begin.
func (l *elasticLab) beatsAhead(t *testing.T) (first, second string) {
	t.Helper()
	var waiting []fakeJob
	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			if strings.HasSuffix(j.Name, "-h") && j.State == "PENDING" {
				waiting = append(waiting, *j)
			}
		}
	})
	slices.SortFunc(waiting, func(a, b fakeJob) int { return a.Begin.Compare(b.Begin) })
	ids := [2]string{}
	for i := range min(len(waiting), 2) {
		ids[i] = strconv.Itoa(waiting[i].ID)
	}
	return ids[0], ids[1]
}
