package ssh_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
)

func TestHostThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	down := l.machineOf(made)
	down.listen.Close()
	_, err := f.Get(t.Context(), made.ID)
	requireKind(t, provisioners.KindTransient, err)
	requireKind(t, provisioners.KindTransient, f.Delete(t.Context(), made.ID))
	list, err := f.List(t.Context(), "dep")
	require.NoError(t, err)
	require.False(t, list.Complete)
	_, err = f.Create(t.Context(), "token-1", testSpec("nod_1"))
	requireKind(t, provisioners.KindTransient, err)
	require.ErrorContains(t, err, "out of service")

	for i := range l.config.Hosts {
		l.config.Hosts[i].OutOfService = l.config.Hosts[i].Name == down.name
	}
	f = l.openFleet()
	list, err = f.List(t.Context(), "dep")
	require.NoError(t, err)
	require.True(t, list.Complete)
	require.Empty(t, list.Instances)
	_, err = f.Get(t.Context(), made.ID)
	requireKind(t, provisioners.KindNotFound, err)
	require.NoError(t, f.Delete(t.Context(), made.ID))
	require.NotEqual(t, down, l.machineOf(l.claimMachine(f, 2)))

	for _, m := range l.machines {
		m.listen.Close()
	}
	_, err = f.List(t.Context(), "dep")
	requireKind(t, provisioners.KindTransient, err)
}

func TestContextEndsWhileTheHostIsSilent(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	f := l.openFleet()
	l.machines[0].writeFile("hang", "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := f.Create(ctx, "token-1", testSpec("nod_1"))
		ended <- err
	}()
	require.Eventually(t, func() bool { return l.countRuns("survey") == 1 }, time.Minute, time.Millisecond)
	cancel()
	err := <-ended
	requireKind(t, provisioners.KindTransient, err)
	require.ErrorIs(t, err, context.Canceled)
}
