package provisionertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/provisioners"
)

func offersAreSane(t *testing.T, s Subject) {
	require.NoError(t, provisioners.CheckName(s.Name()))
	offers, err := s.Offers(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, offers)
	seen := map[[2]string]bool{}
	found := false
	for _, offer := range offers {
		key := [2]string{offer.Type, offer.Region}
		require.NotEmpty(t, offer.Type)
		require.False(t, seen[key], "two offers are %v", key)
		seen[key] = true
		require.Positive(t, offer.GPUs)
		require.NotEmpty(t, offer.Model)
		require.GreaterOrEqual(t, offer.MemoryMiB, 0)
		require.GreaterOrEqual(t, int64(offer.Price), int64(0))
		require.GreaterOrEqual(t, offer.MinBilling, time.Duration(0))
		require.GreaterOrEqual(t, offer.Boot.P50, time.Duration(0))
		require.GreaterOrEqual(t, offer.Boot.P95, offer.Boot.P50)
		found = found || offer.Type == s.Spec.Type
	}
	require.True(t, found, "the spec's type is not offered")
}

func tagsComeBack(t *testing.T, s Subject) {
	made := s.createInstance(t)
	require.NotEmpty(t, made.ID)
	got, err := s.Get(t.Context(), made.ID)
	require.NoError(t, err)
	list, err := s.List(t.Context(), owner)
	require.NoError(t, err)
	require.Len(t, list.Instances, 1)
	for _, instance := range []provisioners.Instance{made, got, list.Instances[0]} {
		require.Equal(t, made.ID, instance.ID)
		require.Equal(t, token, instance.Token)
		require.Equal(t, owner, instance.Owner)
		require.Equal(t, node, instance.NodeID)
		require.Equal(t, s.Spec.Type, instance.Type)
		require.False(t, instance.CreatedAt.IsZero())
		require.True(t, made.CreatedAt.Equal(instance.CreatedAt))
	}
}

func bootsInTime(t *testing.T, s Subject) {
	offers, err := s.Offers(t.Context())
	require.NoError(t, err)
	machine := s.awaitRunning(t, s.createInstance(t).ID)
	for _, offer := range offers {
		if offer.Type == s.Spec.Type {
			require.Len(t, machine.Devices, offer.GPUs)
			require.Equal(t, offer.Simulated, machine.Simulated)
		}
	}
	_, err = access.Parse(machine.Address)
	require.NoError(t, err, "its holder must be told where it is")
	uuids, indexes := map[string]bool{}, map[int]bool{}
	for _, device := range machine.Devices {
		require.NotEmpty(t, device.UUID)
		require.NotEmpty(t, device.Model)
		uuids[device.UUID], indexes[device.Index] = true, true
	}
	require.Len(t, uuids, len(machine.Devices), "UUIDs repeat")
	require.Len(t, indexes, len(machine.Devices), "indexes repeat")
	again, err := s.Get(t.Context(), machine.ID)
	require.NoError(t, err)
	require.Equal(t, machine.Devices, again.Devices, "devices changed")
}

func createIsRepeatable(t *testing.T, s Subject) {
	first := s.createInstance(t)
	require.Equal(t, first.ID, s.createInstance(t).ID)
	s.awaitRunning(t, first.ID)
	again := s.createInstance(t)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, provisioners.Running, again.Phase)
	require.Equal(t, 1, s.countLive(t, owner))
}

func createIsRepeatableAtOnce(t *testing.T, s Subject) {
	const callers = 8
	made := make([]provisioners.Instance, callers)
	errs := make([]error, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() { made[i], errs[i] = s.Create(t.Context(), token, s.specWithTags(owner, node)) })
	}
	group.Wait()
	for i := range callers {
		require.NoError(t, errs[i])
		require.Equal(t, made[0].ID, made[i].ID)
	}
	require.Equal(t, 1, s.countLive(t, owner))
}

func createIsRepeatableAfterTheEnd(t *testing.T, s Subject) {
	made := s.createInstance(t)
	require.NoError(t, s.Delete(t.Context(), made.ID))
	again := s.createInstance(t)
	require.True(t, isEnding(again), "a late duplicate made a machine: %+v", again)
	s.awaitGone(t, made.ID)
	again = s.createInstance(t)
	require.True(t, isEnding(again), "a late duplicate made a machine: %+v", again)
	require.Zero(t, s.countLive(t, owner))
}

func tokenBelongsToItsSpec(t *testing.T, s Subject) {
	s.createInstance(t)
	others := []provisioners.Spec{s.specWithTags("deployment-b", node), s.specWithTags(owner, "nod_2")}
	if s.OtherSpec != (provisioners.Spec{}) {
		other := s.OtherSpec
		other.Owner, other.NodeID = owner, node
		others = append(others, other)
	}
	for _, other := range others {
		_, err := s.Create(t.Context(), token, other)
		requireKind(t, provisioners.KindBadSpec, err)
		require.True(t, provisioners.Final(err))
	}
	require.Equal(t, 1, s.countLive(t, owner))
	require.Zero(t, s.countLive(t, "deployment-b"))
}

func badSpecMakesNothing(t *testing.T, s Subject) {
	unknownType, untyped := s.specWithTags(owner, node), s.specWithTags(owner, node)
	unknownType.Type, untyped.Type = "no-such-type", ""
	for name, bad := range map[string]struct {
		token string
		spec  provisioners.Spec
	}{
		"no token":     {"", s.specWithTags(owner, node)},
		"no owner":     {token, s.specWithTags("", node)},
		"no node":      {token, s.specWithTags(owner, "")},
		"no type":      {token, untyped},
		"unknown type": {token, unknownType},
	} {
		_, err := s.Create(t.Context(), bad.token, bad.spec)
		require.Error(t, err, name)
		requireKind(t, provisioners.KindBadSpec, err)
	}
	require.Zero(t, s.countLive(t, owner))
	require.Zero(t, s.countLive(t, ""))
	s.createInstance(t) // the token is still good: nothing was made for it
}

func endedContextMakesNothing(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Create(ctx, token, s.specWithTags(owner, node))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, s.countLive(t, owner))
	made := s.createInstance(t)
	_, err = s.Get(ctx, made.ID)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.List(ctx, owner)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Offers(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Delete(ctx, made.ID), context.Canceled)
	require.Equal(t, 1, s.countLive(t, owner))
}

func noCapacityMakesNothing(t *testing.T, s Subject) {
	if s.RunOut == nil { // an adapter without that hook shows it by filling up
		for i := range s.Machines {
			_, err := s.Create(t.Context(), "filler-"+string(rune('a'+i)), s.specWithTags("deployment-b", "nod_filler"))
			require.NoError(t, err)
		}
	} else {
		s.RunOut()
	}
	_, err := s.Create(t.Context(), token, s.specWithTags(owner, node))
	requireKind(t, provisioners.KindCapacity, err)
	require.Zero(t, s.countLive(t, owner))
}
