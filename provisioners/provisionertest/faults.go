package provisionertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
)

// lacksFault ends a test whose fault the provider cannot be made to have. It is
// not skipped: the log says which part of the contract rests on other tests.
func lacksFault(t *testing.T, missing bool) bool {
	t.Helper()
	if missing {
		t.Log("this provider cannot be made to do that")
	}
	return missing
}

func createThatFailed(t *testing.T, s Subject) {
	if lacksFault(t, s.FailCreate == nil) {
		return
	}
	s.FailCreate()
	_, err := s.Create(t.Context(), token, s.specWithTags(owner, node))
	requireKind(t, provisioners.KindTransient, err)
	require.Zero(t, s.countLive(t, owner))
	s.createInstance(t)
	require.Equal(t, 1, s.countLive(t, owner))
}

func deleteThatFailed(t *testing.T, s Subject) {
	if lacksFault(t, s.FailDelete == nil) {
		return
	}
	made := s.createInstance(t)
	s.FailDelete()
	require.Error(t, s.Delete(t.Context(), made.ID))
	require.Equal(t, 1, s.countLive(t, owner))
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.awaitGone(t, made.ID)
}

// What was said to be deleted and lives on must show: Get is what is believed.
func deleteThatWasIgnored(t *testing.T, s Subject) {
	if lacksFault(t, s.IgnoreDelete == nil) {
		return
	}
	made := s.awaitRunning(t, s.createInstance(t).ID)
	s.IgnoreDelete()
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.Advance(s.GoneWithin)
	still, err := s.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.False(t, isEnding(still), "it lives, and is said to be gone")
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.awaitGone(t, made.ID)
}

// manyRefusals is more than any adapter may wait out by itself in one call.
const manyRefusals = 100

func tooManyCalls(t *testing.T, s Subject) {
	if lacksFault(t, s.Throttle == nil) {
		return
	}
	made := s.createInstance(t)
	s.Throttle(manyRefusals)
	_, err := s.Create(t.Context(), "token-2", s.specWithTags(owner, "nod_2"))
	requireKind(t, provisioners.KindThrottled, err)
	_, err = s.Get(t.Context(), made.ID)
	requireKind(t, provisioners.KindThrottled, err)
	_, err = s.List(t.Context(), owner)
	requireKind(t, provisioners.KindThrottled, err)
	requireKind(t, provisioners.KindThrottled, s.Delete(t.Context(), made.ID))
	s.Throttle(0)
	require.Equal(t, 1, s.countLive(t, owner), "a refused call had an effect")
}

func listThatLags(t *testing.T, s Subject) {
	if lacksFault(t, s.LagList == nil) {
		return
	}
	const lag = 10 * time.Second
	old := s.createInstance(t)
	s.Advance(lag)
	s.LagList(lag)
	young, err := s.Create(t.Context(), "token-2", s.specWithTags(owner, "nod_2"))
	require.NoError(t, err)
	require.True(t, s.isListed(t, old.ID))
	got, err := s.Get(t.Context(), young.ID)
	require.NoError(t, err, "Get may not deny what Create has answered")
	require.Equal(t, young.ID, got.ID)
	again, err := s.Create(t.Context(), "token-2", s.specWithTags(owner, "nod_2"))
	require.NoError(t, err)
	require.Equal(t, young.ID, again.ID, "a list that lags made a second machine")
	s.Advance(2 * lag)
	require.Equal(t, 2, s.countLive(t, owner))
}

func foreignMachines(t *testing.T, s Subject) {
	if lacksFault(t, s.Foreign == nil) {
		return
	}
	stands := s.Foreign()
	made := s.createInstance(t)
	require.Equal(t, 1, s.countLive(t, owner))
	require.Zero(t, s.countLive(t, ""))
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.awaitGone(t, made.ID)
	require.True(t, stands(), "somebody else's machine was ended")
}

func reclaimedMachine(t *testing.T, s Subject) {
	if lacksFault(t, s.Reclaim == nil) {
		return
	}
	made := s.awaitRunning(t, s.createInstance(t).ID)
	require.Nil(t, made.Notice)
	s.Reclaim(made.ID)
	for range s.looks() {
		got, err := s.Get(t.Context(), made.ID)
		if err != nil {
			requireKind(t, provisioners.KindNotFound, err)
			return
		}
		if got.Phase == provisioners.Terminated {
			return
		}
		if got.Phase == provisioners.Running {
			require.NotNil(t, got.Notice, "it is being taken back, and nothing says so")
			require.Equal(t, provisioners.NoticeInterruption, got.Notice.Kind)
		}
		s.Advance(s.GoneWithin / steps)
	}
	require.FailNow(t, "a reclaimed machine did not end in time")
}

func nobodyRenews(t *testing.T, s Subject) {
	renewer, renews := s.Provisioner.(provisioners.Renewer)
	if lacksFault(t, !renews || s.Now == nil) {
		return
	}
	spec := s.specWithTags(owner, node)
	expires := s.Now().Add(2 * s.BootWithin)
	spec.ExpiresAt = expires
	made, err := s.Create(t.Context(), token, spec)
	require.NoError(t, err)
	s.awaitRunning(t, made.ID)
	renewed := expires.Add(s.BootWithin)
	require.NoError(t, renewer.Renew(t.Context(), made.ID, renewed))
	require.NoError(t, renewer.Renew(t.Context(), made.ID, expires), "an earlier end changes nothing")
	s.Advance(expires.Add(s.BootWithin / 2).Sub(s.Now()))
	require.Equal(t, 1, s.countLive(t, owner), "a renewed machine ended")
	s.Advance(renewed.Add(time.Second).Sub(s.Now()))
	s.awaitGone(t, made.ID)
	requireKind(t, provisioners.KindNotFound, renewer.Renew(t.Context(), made.ID, renewed.Add(time.Hour)))
}

func expiryIsNoIdentity(t *testing.T, s Subject) {
	first := s.createInstance(t)
	spec := s.specWithTags(owner, node)
	spec.ExpiresAt = first.CreatedAt.Add(24 * time.Hour)
	again, err := s.Create(t.Context(), token, spec)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, 1, s.countLive(t, owner))
}

// isListed reports whether the owner's list has the machine.
func (s Subject) isListed(t *testing.T, id string) bool {
	t.Helper()
	list, err := s.List(t.Context(), owner)
	require.NoError(t, err)
	for _, instance := range list.Instances {
		if instance.ID == id {
			return true
		}
	}
	return false
}
