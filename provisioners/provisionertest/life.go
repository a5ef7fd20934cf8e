package provisionertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
)

func unknownIDs(t *testing.T, s Subject) {
	made := s.createInstance(t)
	for _, id := range []string{"no-such-machine", "", made.ID + "0", "../" + made.ID} {
		_, err := s.Get(t.Context(), id)
		requireKind(t, provisioners.KindNotFound, err)
		require.NoError(t, s.Delete(t.Context(), id), "a machine that is gone is not an error")
	}
	require.Equal(t, 1, s.countLive(t, owner))
}

func listKnowsItsOwner(t *testing.T, s Subject) {
	empty, err := s.List(t.Context(), owner)
	require.NoError(t, err)
	require.True(t, empty.Complete)
	require.Empty(t, empty.Instances)
	made := s.createInstance(t)
	if s.Machines > 1 {
		_, err := s.Create(t.Context(), "token-2", s.specWithTags("deployment-b", "nod_2"))
		require.NoError(t, err)
		require.Equal(t, 1, s.countLive(t, "deployment-b"))
	}
	list, err := s.List(t.Context(), owner)
	require.NoError(t, err)
	require.Len(t, list.Instances, 1)
	require.Equal(t, made.ID, list.Instances[0].ID)
	for _, stranger := range []string{"deployment-c", "deployment", ""} {
		require.Zero(t, s.countLive(t, stranger), "owner %q", stranger)
	}
}

func deleteIsRepeatable(t *testing.T, s Subject) {
	made := s.createInstance(t)
	s.awaitRunning(t, made.ID)
	require.NoError(t, s.Delete(t.Context(), made.ID))
	require.Zero(t, s.countLive(t, owner))
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.awaitGone(t, made.ID)
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.awaitGone(t, made.ID)
}

func deleteWhileBooting(t *testing.T, s Subject) {
	made := s.createInstance(t)
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.awaitGone(t, made.ID)
	s.Advance(s.BootWithin)
	s.awaitGone(t, made.ID)
	require.Zero(t, s.countLive(t, owner))
}

// A late Delete of an old machine must never hit a new one.
func idIsNeverUsedTwice(t *testing.T, s Subject) {
	first := s.createInstance(t)
	require.NoError(t, s.Delete(t.Context(), first.ID))
	s.awaitGone(t, first.ID)
	second, err := s.Create(t.Context(), "token-2", s.specWithTags(owner, "nod_2"))
	require.NoError(t, err)
	require.NotEqual(t, first.ID, second.ID)
	require.NoError(t, s.Delete(t.Context(), first.ID))
	require.Equal(t, 1, s.countLive(t, owner))
}

func restartForgetsNothing(t *testing.T, s Subject) {
	made := s.awaitRunning(t, s.createInstance(t).ID)
	s.Provisioner = s.Reopen(t)
	again, err := s.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, made, again)
	require.Equal(t, made.ID, s.createInstance(t).ID)
	require.Equal(t, 1, s.countLive(t, owner))
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.Provisioner = s.Reopen(t)
	require.Zero(t, s.countLive(t, owner))
	s.awaitGone(t, made.ID)
	s.Provisioner = s.Reopen(t)
	require.True(t, isEnding(s.createInstance(t)), "a late duplicate made a machine after a restart")
}

// The answer of the first call is lost; whether the machine was made must not
// matter to the caller who repeats it.
func createThatTimedOut(t *testing.T, s Subject) {
	if s.TimeOutCreate != nil {
		s.TimeOutCreate()
		_, err := s.Create(t.Context(), token, s.specWithTags(owner, node))
		requireKind(t, provisioners.KindUnknown, err)
		require.False(t, provisioners.Final(err))
		require.Equal(t, 1, s.countLive(t, owner))
	} else { // the caller, not the provider, loses the answer and restarts
		s.createInstance(t)
		s.Provisioner = s.Reopen(t)
	}
	made := s.createInstance(t)
	require.Equal(t, 1, s.countLive(t, owner))
	s.awaitRunning(t, made.ID)
}

func deleteThatTimedOut(t *testing.T, s Subject) {
	made := s.createInstance(t)
	if s.TimeOutDelete != nil {
		s.TimeOutDelete()
		require.Error(t, s.Delete(t.Context(), made.ID))
	} else {
		require.NoError(t, s.Delete(t.Context(), made.ID))
		s.Provisioner = s.Reopen(t)
	}
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.awaitGone(t, made.ID)
}

// Without the hook the list comes from one place, so it must always be complete.
func truncatedListSaysSo(t *testing.T, s Subject) {
	s.createInstance(t)
	if s.TruncateList != nil {
		s.TruncateList()
		list, err := s.List(t.Context(), owner)
		require.NoError(t, err)
		require.False(t, list.Complete, "a truncated list claims to be complete")
	}
	require.Equal(t, 1, s.countLive(t, owner))
}
