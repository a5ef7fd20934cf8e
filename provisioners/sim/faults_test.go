package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
)

func TestFailBefore(t *testing.T) {
	t.Parallel()
	cloud, _ := openCloud(t, testConfig())
	made := createInstance(t, cloud, 1)
	calls := map[sim.Op]func() error{
		sim.OpOffers: func() error { _, err := cloud.Offers(t.Context()); return err },
		sim.OpCreate: func() error { _, err := cloud.Create(t.Context(), "token-2", testSpec("nod_2")); return err },
		sim.OpGet:    func() error { _, err := cloud.Get(t.Context(), made.ID); return err },
		sim.OpList:   func() error { _, err := cloud.List(t.Context(), "dep"); return err },
		sim.OpDelete: func() error { return cloud.Delete(t.Context(), made.ID) },
	}
	for op, call := range calls {
		injectFault(t, cloud, sim.Fault{
			Op: op, Effect: sim.FailBefore, Times: 2, Kind: provisioners.KindThrottled, Scope: "account",
			RetryAfter: time.Minute,
		})
		for range 2 {
			var typed *provisioners.Error
			require.ErrorAs(t, call(), &typed, op)
			require.Equal(t, provisioners.KindThrottled, typed.Kind)
			require.Equal(t, time.Minute, typed.RetryAfter)
			require.Equal(t, "account", typed.Scope)
		}
	}
	require.Equal(t, map[string]int{"nod_1": 1}, cloud.LivePerNode(), "failed calls did something")
	for op, call := range calls {
		require.NoError(t, call(), "%s still fails", op)
	}
}

// A dead call does not use up a fault, and faults of one call queue up.
func TestFaultsQueueUp(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Faults = []sim.Fault{{Op: sim.OpGet, Effect: sim.FailBefore, Kind: provisioners.KindTransient, Times: 1}}
	cloud, _ := openCloud(t, c)
	made := createInstance(t, cloud, 1)
	injectFault(t, cloud, sim.Fault{Op: sim.OpGet, Effect: sim.Deny})
	for _, want := range []provisioners.Kind{provisioners.KindTransient, provisioners.KindNotFound} {
		_, err := cloud.Get(t.Context(), made.ID)
		require.Equal(t, want, provisioners.KindOf(err))
	}
	_, err := cloud.Get(t.Context(), made.ID)
	require.NoError(t, err)
}

func TestBadFaultsAreRefused(t *testing.T) {
	t.Parallel()
	cloud, _ := openCloud(t, testConfig())
	for _, fault := range []sim.Fault{
		{},
		{Op: sim.OpCreate, Effect: "explode", Times: 1},
		{Op: sim.OpCreate, Effect: sim.Deny, Times: 1},
		{Op: sim.OpCreate, Effect: sim.BootDies},
		{Op: sim.OpCreate, Effect: sim.FailBefore, Times: 1},
		{Op: sim.OpCreate, Effect: sim.FailBefore, Times: 1, Kind: "sulky"},
	} {
		require.Error(t, cloud.Inject(fault), "%+v", fault)
	}
}

func TestTruncatedList(t *testing.T) {
	t.Parallel()
	cloud, _ := openCloud(t, testConfig())
	for n := range 4 {
		createInstance(t, cloud, n)
	}
	injectFault(t, cloud, sim.Fault{Op: sim.OpList, Effect: sim.Truncate})
	list, err := cloud.List(t.Context(), "dep")
	require.NoError(t, err)
	require.False(t, list.Complete)
	require.Len(t, list.Instances, 2)
	list, err = cloud.List(t.Context(), "dep")
	require.NoError(t, err)
	require.True(t, list.Complete)
	require.Len(t, list.Instances, 4)
}

func TestListLag(t *testing.T) {
	t.Parallel()
	cloud, manual := openCloud(t, testConfig())
	cloud.SetListLag(time.Minute)
	made := createInstance(t, cloud, 1)
	phases := func() []provisioners.Phase {
		list, err := cloud.List(t.Context(), "dep")
		require.NoError(t, err)
		require.True(t, list.Complete, "a late list does not know that it is late")
		var phases []provisioners.Phase
		for _, instance := range list.Instances {
			phases = append(phases, instance.Phase)
		}
		return phases
	}
	require.Empty(t, phases())
	_, err := cloud.Get(t.Context(), made.ID)
	require.NoError(t, err, "Get does not lag")
	manual.Advance(time.Minute)
	require.Equal(t, []provisioners.Phase{provisioners.Booting}, phases())
	require.NoError(t, cloud.Delete(t.Context(), made.ID))
	manual.Advance(59 * time.Second)
	require.Equal(t, []provisioners.Phase{provisioners.Booting}, phases())
	manual.Advance(2 * time.Second)
	require.Equal(t, []provisioners.Phase{provisioners.Terminating}, phases())
}

func TestDeleteThatIsIgnored(t *testing.T) {
	t.Parallel()
	cloud, manual := openCloud(t, testConfig())
	made := createInstance(t, cloud, 1)
	injectFault(t, cloud, sim.Fault{Op: sim.OpDelete, Effect: sim.Ignore})
	require.NoError(t, cloud.Delete(t.Context(), made.ID))
	manual.Advance(2 * time.Hour)
	got, err := cloud.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
	require.NoError(t, cloud.Delete(t.Context(), made.ID))
	manual.Advance(time.Minute)
	require.Empty(t, cloud.LivePerNode())
}

func TestBootThatNeverEnds(t *testing.T) {
	t.Parallel()
	cloud, manual := openCloud(t, testConfig())
	injectFault(t, cloud, sim.Fault{Op: sim.OpCreate, Effect: sim.BootNever})
	made := createInstance(t, cloud, 1)
	manual.Advance(100 * time.Hour)
	got, err := cloud.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Booting, got.Phase)
	require.Equal(t, 100*time.Hour, cloud.Bill(manual.Now()).Total.Billed, "a stuck machine is billed")
	require.NoError(t, cloud.Delete(t.Context(), made.ID))
	manual.Advance(time.Minute)
	require.Empty(t, cloud.LivePerNode())
}

// It dies half-way, so between half the shortest boot and half of a very long
// one. Deleting it before or after is no error and moves no end backwards.
func TestBootThatDies(t *testing.T) {
	t.Parallel()
	for name, deleteAfter := range map[string]time.Duration{"never": 0, "early": time.Second, "late": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testConfig()
			c.Remembered = 5 * time.Hour
			cloud, manual := openCloud(t, c)
			injectFault(t, cloud, sim.Fault{Op: sim.OpCreate, Effect: sim.BootDies})
			made := createInstance(t, cloud, 1)
			manual.Advance(deleteAfter)
			if deleteAfter > 0 {
				require.NoError(t, cloud.Delete(t.Context(), made.ID))
			}
			manual.Advance(2 * time.Hour)
			got, err := cloud.Get(t.Context(), made.ID)
			require.NoError(t, err)
			require.Equal(t, provisioners.Terminated, got.Phase)
			require.Empty(t, got.Devices)
			line := cloud.Bill(manual.Now()).Lines[0]
			if name == "early" {
				require.Equal(t, 31*time.Second, line.To.Sub(line.From))
			} else {
				require.Greater(t, line.To.Sub(line.From), time.Minute-1)
				require.Less(t, line.To.Sub(line.From), time.Hour)
			}
		})
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Offers[0].Stock = 1
	cloud, manual := openCloud(t, c)
	made := createInstance(t, cloud, 1)
	manual.Advance(2 * time.Hour)
	require.NoError(t, cloud.Kill(made.ID))
	require.NoError(t, cloud.Kill(made.ID))
	require.NoError(t, cloud.Kill("no-such-machine"))
	got, err := cloud.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.NoError(t, cloud.Delete(t.Context(), made.ID))
	createInstance(t, cloud, 2) // its stock is free again
	manual.Advance(time.Hour)
	require.Equal(t, 3*time.Hour, cloud.Bill(manual.Now()).Total.Billed)
}

func TestLivePerNodeSeesDuplicates(t *testing.T) {
	t.Parallel()
	cloud, _ := openCloud(t, testConfig())
	for n := range 2 {
		_, err := cloud.Create(t.Context(), fmt.Sprint("generation-", n), testSpec("nod_1"))
		require.NoError(t, err)
	}
	require.Equal(t, map[string]int{"nod_1": 2}, cloud.LivePerNode())
}
