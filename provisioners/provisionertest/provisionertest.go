// Package provisionertest is the contract of provisioners.Provisioner as tests.
// Every adapter runs it; an adapter that passes is safe to give money to.
package provisionertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
)

// Harness makes subjects.
type Harness struct {
	// New makes an empty provider and an adapter to it, which no other test uses.
	New func(t *testing.T) Subject
}

// Subject is one adapter under test.
type Subject struct {
	provisioners.Provisioner
	// Reopen makes another adapter to the same provider, as a restarted process
	// would. The old adapter is not used afterwards.
	Reopen func(t *testing.T) provisioners.Provisioner
	// Spec is one that can be made. The suite sets Owner and NodeID.
	Spec provisioners.Spec
	// OtherSpec differs from Spec in more than the tags, or is empty when the
	// adapter can make only one thing.
	OtherSpec provisioners.Spec
	// Machines is how many can exist at once, at least one.
	Machines int
	// Advance lets the time pass for the provider.
	Advance func(time.Duration)
	// BootWithin and GoneWithin bound the waiting after Create and Delete.
	BootWithin, GoneWithin time.Duration
	// Patience is how many times as long a machine may take whose time is this one's, as
	// that may be busy; 0 means once.
	Patience int
	// The hooks below inject one fault into the next call of their name; nil
	// where the adapter's provider cannot be made to fail.
	TimeOutCreate func() // the machine is made, the answer is KindUnknown
	TimeOutDelete func() // the end is started, the answer is an error
	TruncateList  func() // some page or row of the answer is missing
	RunOut        func() // nothing can be had until the subject is thrown away
	FailCreate    func() // nothing is done, and the answer says so: KindTransient
	FailDelete    func() // nothing is done, the answer is an error
	IgnoreDelete  func() // the answer is success, and the machine lives on
	// Throttle makes the next calls, whatever they are, fail for being too many:
	// KindThrottled. An adapter may wait and repeat a few times by itself first,
	// so the number is that of the provider's refusals.
	Throttle func(calls int)
	// LagList makes List show the world as it was that long ago, from now on.
	LagList func(time.Duration)
	// Foreign makes a machine that is none of ours appear at the provider, and
	// returns whether it still stands.
	Foreign func() (stands func() bool)
	// Reclaim makes the provider take the machine back, with whatever notice it
	// gives.
	Reclaim func(id string)
	// Now is the provider's time, needed by a provisioners.Renewer whose
	// machines can be seen to end by themselves here.
	Now func() time.Time
	// Histories is how many random histories are played; 0 means 20. A slow
	// provider may want fewer.
	Histories int
}

const owner, node, token = "deployment-a", "nod_1", "token-1"

// Run runs the suite.
func Run(t *testing.T, harness Harness) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"offers are sane", offersAreSane},
		{"tags come back", tagsComeBack},
		{"a machine boots in time", bootsInTime},
		{"create is repeatable", createIsRepeatable},
		{"create is repeatable at once", createIsRepeatableAtOnce},
		{"create is repeatable after the end", createIsRepeatableAfterTheEnd},
		{"a token belongs to its spec", tokenBelongsToItsSpec},
		{"a bad spec makes nothing", badSpecMakesNothing},
		{"an ended context makes nothing", endedContextMakesNothing},
		{"unknown ids", unknownIDs},
		{"list knows its owner", listKnowsItsOwner},
		{"delete is repeatable", deleteIsRepeatable},
		{"delete while booting", deleteWhileBooting},
		{"an id is never used twice", idIsNeverUsedTwice},
		{"a restart forgets nothing", restartForgetsNothing},
		{"a create that timed out", createThatTimedOut},
		{"a delete that timed out", deleteThatTimedOut},
		{"a truncated list says so", truncatedListSaysSo},
		{"no capacity makes nothing", noCapacityMakesNothing},
		{"a create that failed made nothing", createThatFailed},
		{"a delete that failed is repeated", deleteThatFailed},
		{"a delete that was ignored is seen", deleteThatWasIgnored},
		{"too many calls", tooManyCalls},
		{"a list that lags denies nothing that is older", listThatLags},
		{"foreign machines are left alone", foreignMachines},
		{"a reclaimed machine says so and ends", reclaimedMachine},
		{"a machine that nobody renews ends", nobodyRenews},
		{"another expiry is the same machine", expiryIsNoIdentity},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, harness.New(t))
		})
	}
	t.Run("random histories with faults", func(t *testing.T) {
		t.Parallel()
		testHistories(t, harness)
	})
}

// specWithTags is Spec with tags.
func (s Subject) specWithTags(owner, node string) provisioners.Spec {
	spec := s.Spec
	spec.Owner, spec.NodeID = owner, node
	return spec
}

// createInstance makes the suite's usual machine.
func (s Subject) createInstance(t *testing.T) provisioners.Instance {
	t.Helper()
	instance, err := s.Create(t.Context(), token, s.specWithTags(owner, node))
	require.NoError(t, err)
	return instance
}

// steps is into how many parts a waiting time is cut.
const steps = 20

// looks is how often is looked at what is waited for, each time after a part of the time.
func (s Subject) looks() int { return max(1, s.Patience)*steps + 1 }

// awaitRunning lets time pass until the machine runs.
func (s Subject) awaitRunning(t *testing.T, id string) provisioners.Instance {
	t.Helper()
	for range s.looks() {
		instance, err := s.Get(t.Context(), id)
		require.NoError(t, err)
		if instance.Phase == provisioners.Running {
			return instance
		}
		require.Equal(t, provisioners.Booting, instance.Phase)
		require.Empty(t, instance.Devices, "devices of a machine that cannot be used")
		s.Advance(s.BootWithin / steps)
	}
	require.FailNow(t, "the machine did not boot in time")
	return provisioners.Instance{}
}

// awaitGone lets time pass until the machine is Terminated or unknown.
func (s Subject) awaitGone(t *testing.T, id string) {
	t.Helper()
	for range s.looks() {
		instance, err := s.Get(t.Context(), id)
		if err != nil {
			require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(err), "%v", err)
			return
		}
		if instance.Phase == provisioners.Terminated {
			return
		}
		require.Equal(t, provisioners.Terminating, instance.Phase)
		s.Advance(s.GoneWithin / steps)
	}
	require.FailNow(t, "the machine was not gone in time")
}

// countLive counts the owner's machines that are not on their way out.
func (s Subject) countLive(t *testing.T, owner string) int {
	t.Helper()
	list, err := s.List(t.Context(), owner)
	require.NoError(t, err)
	require.True(t, list.Complete)
	count := 0
	for _, instance := range list.Instances {
		if !isEnding(instance) {
			count++
		}
	}
	return count
}

func isEnding(instance provisioners.Instance) bool {
	return instance.Phase == provisioners.Terminating || instance.Phase == provisioners.Terminated
}

// requireKind wants a typed error: one that says its kind by itself.
func requireKind(t *testing.T, want provisioners.Kind, err error) {
	t.Helper()
	var typed *provisioners.Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, want, typed.Kind, "%v", err)
}
