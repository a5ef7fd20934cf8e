//go:build clouds

package aws_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws/ec2test"
)

// What EC2 answers to a launch, and what the control plane makes of it.
func TestErrorsOfALaunch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code, offer string
		status      int
		want        provisioners.Kind
		scope       string
	}{
		{"InsufficientInstanceCapacity", "p5", 0, provisioners.KindCapacity, "test-1a/p5.48xlarge"},
		{"InsufficientInstanceCapacity", "p5-spot", 0, provisioners.KindCapacity, "test-1a/p5.48xlarge/spot"},
		{"UnfulfillableCapacity", "p5-spot", 0, provisioners.KindCapacity, "test-1a/p5.48xlarge/spot"},
		{"ReservationCapacityExceeded", "p5-odcr", 0, provisioners.KindCapacity,
			"test-1a/p5.48xlarge/capacity_reservation"},
		{"InsufficientFreeAddressesInSubnet", "g6", 0, provisioners.KindCapacity, "subnet-b"},
		{"InsufficientVolumeCapacity", "g6", 0, provisioners.KindCapacity, "subnet-b/g6.12xlarge"},
		{"Unsupported", "p5", 0, provisioners.KindCapacity, "test-1a/p5.48xlarge"},
		{"SpotMaxPriceTooLow", "p5-spot", 0, provisioners.KindCapacity, "test-1a/p5.48xlarge/spot"},

		{"VcpuLimitExceeded", "p5", 0, provisioners.KindQuota, "vcpus/p/on_demand"},
		{"VcpuLimitExceeded", "g6", 0, provisioners.KindQuota, "vcpus/g/on_demand"},
		{"InstanceLimitExceeded", "p5", 0, provisioners.KindQuota, "instances/p5.48xlarge"},
		{"MaxSpotInstanceCountExceeded", "p5-spot", 0, provisioners.KindQuota, "spot/p"},
		{"MaxFleetCountExceeded", "p5", 0, provisioners.KindQuota, "MaxFleetCountExceeded"},
		{"VolumeLimitExceeded", "p5", 0, provisioners.KindQuota, "VolumeLimitExceeded"},

		{"RequestLimitExceeded", "p5", 0, provisioners.KindThrottled, ""},
		{"Throttling", "p5", 0, provisioners.KindThrottled, ""},
		{"ThrottlingException", "p5", 0, provisioners.KindThrottled, ""},
		{"EC2ThrottledException", "p5", 0, provisioners.KindThrottled, ""},

		{"UnauthorizedOperation", "p5", 0, provisioners.KindDenied, ""},
		{"AuthFailure", "p5", 0, provisioners.KindDenied, ""},
		{"ExpiredToken", "p5", 0, provisioners.KindDenied, ""},
		{"OptInRequired", "p5", 0, provisioners.KindDenied, ""},
		{"PendingVerification", "p5", 0, provisioners.KindDenied, ""},
		{"InvalidClientTokenId", "p5", 0, provisioners.KindDenied, ""},

		{"InvalidParameterValue", "p5", 0, provisioners.KindBadSpec, ""},
		{"InvalidParameterCombination", "p5", 0, provisioners.KindBadSpec, ""},
		{"InvalidAMIID.NotFound", "p5", 0, provisioners.KindBadSpec, ""},
		{"InvalidSubnetID.NotFound", "p5", 0, provisioners.KindBadSpec, ""},
		{"InvalidGroup.NotFound", "p5", 0, provisioners.KindBadSpec, ""},
		{"InvalidKeyPair.NotFound", "p5", 0, provisioners.KindBadSpec, ""},
		{"InvalidCapacityReservationId.NotFound", "p5", 0, provisioners.KindBadSpec, ""},
		{"InvalidUserData.Malformed", "p5", 0, provisioners.KindBadSpec, ""},
		{"VPCIdNotSpecified", "p5", 0, provisioners.KindBadSpec, ""},
		{"UnknownParameter", "p5", 0, provisioners.KindBadSpec, ""},

		{"InternalError", "p5", 0, provisioners.KindUnknown, ""},
		{"ServiceUnavailable", "p5", 0, provisioners.KindUnknown, ""},
		{"Unavailable", "p5", 0, provisioners.KindUnknown, ""},
		{"NeverHeardOfIt", "p5", 0, provisioners.KindUnknown, ""},
		{"NeverHeardOfIt", "p5", http.StatusServiceUnavailable, provisioners.KindUnknown, ""},
		{"IdempotentParameterMismatch", "p5", 0, provisioners.KindUnknown, ""},
	} {
		t.Run(test.code+" "+test.offer, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, regionConfig())
			s.Inject(ec2test.Fault{
				Action: "RunInstances", Effect: ec2test.Refuse, Code: test.code, Message: "in their words",
				Status: test.status, Times: attempts,
			})
			_, err := s.openProvisioner(t).Create(t.Context(), "token-1", testSpec(test.offer))
			typed := requireKind(t, test.want, err)
			require.Equal(t, test.scope, typed.Scope)
			if test.code != "IdempotentParameterMismatch" {
				require.Contains(t, typed.Message, test.code+": in their words")
			}
			require.Empty(t, s.Bill())
		})
	}
}

// A read that failed can be repeated; an end that may have begun is not known.
func TestErrorsOfTheOtherCalls(t *testing.T) {
	t.Parallel()
	for code, want := range map[string][2]provisioners.Kind{ // of a read, of a delete
		"InternalError":         {provisioners.KindTransient, provisioners.KindUnknown},
		"NeverHeardOfIt":        {provisioners.KindTransient, provisioners.KindUnknown},
		"RequestLimitExceeded":  {provisioners.KindThrottled, provisioners.KindThrottled},
		"UnauthorizedOperation": {provisioners.KindDenied, provisioners.KindDenied},
		"OperationNotPermitted": {provisioners.KindDenied, provisioners.KindDenied},
	} {
		s := newSite(t, regionConfig())
		p := s.openProvisioner(t)
		made := createInstance(t, p, "p5")
		calls := []func() error{
			func() error { _, err := p.Get(t.Context(), made.ID); return err },
			func() error { _, err := p.List(t.Context(), "dep"); return err },
			func() error { return p.Renew(t.Context(), made.ID, start.Add(time.Hour)) },
			func() error { return p.Delete(t.Context(), made.ID) },
		}
		for i, call := range calls {
			s.Inject(ec2test.Fault{Effect: ec2test.Refuse, Code: code, Times: attempts})
			typed := requireKind(t, want[i/3], call())
			require.Contains(t, typed.Message, code)
			s.Mend()
		}
		require.Len(t, s.LiveLines(), 1)
	}
}

func TestConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	s.Inject(ec2test.Fault{Action: "RunInstances", Effect: ec2test.Lose, Times: attempts})
	_, err := p.Create(t.Context(), "token-1", testSpec("p5"))
	requireKind(t, provisioners.KindUnknown, err)
	require.NotContains(t, err.Error(), "Authorization")
	made := createInstance(t, p, "p5")
	s.Inject(ec2test.Fault{Action: "DescribeInstances", Effect: ec2test.Lose, Times: attempts})
	_, err = p.Get(t.Context(), made.ID)
	requireKind(t, provisioners.KindTransient, err)
}

func TestWaitingTimeIsPassedOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.Inject(ec2test.Fault{Effect: ec2test.Refuse, Code: "RequestLimitExceeded", RetryAfter: 7 * time.Second,
		Times: attempts})
	_, err := s.openProvisioner(t).List(t.Context(), "dep")
	require.Equal(t, 7*time.Second, requireKind(t, provisioners.KindThrottled, err).RetryAfter)
}

func TestNeitherSilenceNorLagIsProof(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	made := createInstance(t, p, "p5")
	s.Inject(ec2test.Fault{Action: "DescribeInstances", Effect: ec2test.Empty})
	_, err := p.Get(t.Context(), made.ID)
	requireKind(t, provisioners.KindTransient, err)

	s.SetLag(time.Hour, 0)
	got, err := p.Get(t.Context(), made.ID)
	require.NoError(t, err, "it was answered a moment ago")
	require.Equal(t, provisioners.Booting, got.Phase)
	s.clock.Advance(6 * time.Minute)
	_, err = p.Get(t.Context(), made.ID)
	requireKind(t, provisioners.KindNotFound, err)
}

func TestListsThatEndNever(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	createInstance(t, p, "p5")
	s.Inject(ec2test.Fault{Action: "DescribeInstances", Effect: ec2test.Loop, Times: 1000})
	before := s.Calls("DescribeInstances")
	list, err := p.List(t.Context(), "dep")
	require.NoError(t, err)
	require.False(t, list.Complete)
	require.Len(t, list.Instances, 1, "a row that came twice is one machine")
	require.Equal(t, 2, s.Calls("DescribeInstances")-before)
}

// The characters that stand for others in a filter are meant as they are.
func TestOwnersAreNoPatterns(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	for i, owner := range []string{"dep", `d*`, `de?`, `d\*`} {
		made := testSpec("p5")
		made.Owner = owner
		_, err := p.Create(t.Context(), "token-"+string(rune('a'+i)), made)
		require.NoError(t, err)
	}
	for _, owner := range []string{"dep", `d*`, `de?`, `d\*`} {
		list, err := p.List(t.Context(), owner)
		require.NoError(t, err)
		require.True(t, list.Complete)
		require.Len(t, list.Instances, 1, owner)
		require.Equal(t, owner, list.Instances[0].Owner)
	}
}
