package provisionertest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
)

func coldClusterIsSeen(t *testing.T, s ObserverSubject) {
	seen := s.observe(t, "")
	require.Equal(t, s.NodesCome, len(seen.Nodes) == 0)
	require.NotEqual(t, 1, len(seen.Nodes))
	require.Empty(t, seen.Work)
	for _, n := range seen.Nodes {
		require.Equal(t, provisioners.NodeCold, n.State)
		require.Empty(t, n.InstanceID)
		require.Contains(t, n.Types, s.Spec.Type)
		require.Equal(t, s.offered(t).GPUs, n.GPUs)
	}
}

func keptNodeStays(t *testing.T, s ObserverSubject) {
	made := s.createInstance(t)
	require.Equal(t, provisioners.Booting, made.Phase)
	booting := nodeOf(t, s.observe(t, ""), made.ID)
	require.Contains(t, []provisioners.NodeState{provisioners.NodeCold, provisioners.NodePoweringUp}, booting.State)
	s.awaitRunning(t, made.ID)
	s.keepFor(t, 3*s.SuspendWithin, made.ID)
	seen := s.observe(t, "")
	kept := nodeOf(t, seen, made.ID)
	require.Equal(t, provisioners.NodeIdle, kept.State)
	require.True(t, s.NodesCome || booting.Name == kept.Name, "it has another name than while it booted")
	require.Empty(t, seen.Work, "our own work was seen")
	got, err := s.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
}

func keepingIsBounded(t *testing.T, s ObserverSubject) {
	if lacksFault(t, s.Beats == nil) {
		return
	}
	made := s.warm(t)
	before := s.Beats()
	for range 60 { // far more often than it is needed
		for range 3 {
			require.NoError(t, s.observer().Keep(t.Context(), []string{made.ID, made.ID}))
		}
		s.Advance(s.SuspendWithin / 20)
	}
	hours := (60 * s.SuspendWithin / 20).Hours()
	require.LessOrEqual(t, float64(s.Beats()-before), float64(s.MostBeats)*hours+2)
	got, err := s.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
}

// The dead-man switch: a control plane that is gone keeps nothing warm.
func unkeptNodeGoesCold(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	name := nodeOf(t, s.observe(t, ""), made.ID).Name
	s.Advance(3 * s.SuspendWithin)
	for _, n := range s.observe(t, "").Nodes {
		if n.Name == name {
			require.Equal(t, provisioners.NodeCold, n.State)
			require.Empty(t, n.InstanceID)
		}
	}
	s.awaitGone(t, made.ID)
	requireKind(t, provisioners.KindNotFound, s.observer().Keep(t.Context(), []string{made.ID}))
}

func idleNodeIsTakenFirst(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	name := nodeOf(t, s.observe(t, ""), made.ID).Name
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.awaitGone(t, made.ID)
	for _, n := range s.observe(t, "").Nodes {
		require.Empty(t, n.InstanceID)
	}
	again, err := s.Create(t.Context(), "token-2", s.specWithTags(owner, "nod_2"))
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, again.Phase, "a cold node was booted beside one that is up")
	require.Equal(t, name, nodeOf(t, s.observe(t, ""), again.ID).Name)
}

func nodeIsKeptOnce(t *testing.T, s ObserverSubject) {
	first := s.createInstance(t)
	second, err := s.Create(t.Context(), "token-2", s.specWithTags("deployment-b", "nod_2"))
	require.NoError(t, err)
	require.NotEqual(t, first.ID, second.ID)
	seen := s.observe(t, "")
	require.NotEqual(t, nodeOf(t, seen, first.ID).Name, nodeOf(t, seen, second.ID).Name)
}

func keepNamesWhatIsGone(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	require.NoError(t, s.observer().Keep(t.Context(), nil))
	for range 4 {
		err := s.observer().Keep(t.Context(), []string{"no-such-instance", made.ID})
		requireKind(t, provisioners.KindNotFound, err)
		var typed *provisioners.Error
		require.ErrorAs(t, err, &typed)
		require.Equal(t, "no-such-instance", typed.Scope)
		s.Advance(s.observe(t, "").KeepWithin)
	}
	got, err := s.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase, "one that is gone kept the other from being kept")
}

func keepGoesOnAfterRestart(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	for range 3 {
		s.Provisioner = s.Reopen(t)
		s.keepFor(t, s.SuspendWithin, made.ID)
	}
	require.Equal(t, provisioners.NodeIdle, nodeOf(t, s.observe(t, ""), made.ID).State)
	require.Equal(t, made.ID, s.createInstance(t).ID, "the token's node is another one now")
}

func bootThatFails(t *testing.T, s ObserverSubject) {
	if lacksFault(t, s.BreakBoot == nil) {
		return
	}
	s.BreakBoot()
	made := s.createInstance(t)
	name := nodeOf(t, s.observe(t, ""), made.ID).Name
	gone := false
	for range 2*steps + 1 {
		got, err := s.Get(t.Context(), made.ID)
		if err != nil {
			requireKind(t, provisioners.KindNotFound, err)
		}
		require.NotEqual(t, provisioners.Running, got.Phase)
		if gone = err != nil || got.Phase == provisioners.Terminated; gone {
			break
		}
		s.Advance(s.BootWithin / steps)
	}
	require.True(t, gone, "the boot failed, and the instance does not say so")
	for _, n := range s.observe(t, "").Nodes {
		if n.Name == name {
			require.Empty(t, n.InstanceID)
			require.True(t, n.State != provisioners.NodeUnavailable || n.Message != "", "nobody is told")
		}
	}
	requireKind(t, provisioners.KindNotFound, s.observer().Keep(t.Context(), []string{made.ID}))
}

func tooManyLooks(t *testing.T, s ObserverSubject) {
	if lacksFault(t, s.Throttle == nil) {
		return
	}
	made := s.createInstance(t)
	s.Throttle(manyRefusals)
	_, err := s.observer().Observe(t.Context(), "")
	requireKind(t, provisioners.KindThrottled, err)
	requireKind(t, provisioners.KindThrottled, s.observer().Keep(t.Context(), []string{made.ID}))
	s.Throttle(0)
	require.NoError(t, s.observer().Keep(t.Context(), []string{made.ID}))
}

func endedContextLooksAtNothing(t *testing.T, s ObserverSubject) {
	made := s.createInstance(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.observer().Observe(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.observer().Keep(ctx, []string{made.ID}), context.Canceled)
}

// keepingSurvivesWork lets work stay for longer than nodes stay idle, beside Keep, and
// cools nothing when it ends.
func keepingSurvivesWork(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	handle := s.Submit(PlainWork{GPUs: s.offered(t).GPUs, Nodes: 1})
	s.awaitStart(t)
	before := 0
	if s.Beats != nil {
		before = s.Beats()
	}
	s.keepFor(t, 3*s.SuspendWithin, made.ID)
	if s.Beats != nil {
		require.LessOrEqual(t, s.Beats()-before, 1, "a node with work needs no heartbeat")
	}
	require.True(t, s.Runs(handle))
	s.Finish(handle)
	s.keepFor(t, 3*s.SuspendWithin, made.ID)
	require.Equal(t, provisioners.NodeIdle, nodeOf(t, s.observe(t, ""), made.ID).State)
}
