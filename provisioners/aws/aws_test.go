//go:build clouds

package aws_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws"
	"github.com/forewarm/forewarm/provisioners/aws/ec2test"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// site is one fake region and what is needed to reach it.
type site struct {
	*ec2test.Region
	clock  *clock.Manual
	config aws.Config
}

func priceOf(dollars money.MicroUSD) *provisioners.Price {
	p := provisioners.Price(dollars)
	return &p
}

const image = "ami-0123456789abcdef0"

func regionConfig() ec2test.Config {
	return ec2test.Config{
		PageSize: 2, AccessKeys: []string{"AKIDEXAMPLE"}, Groups: []string{"sg-1"},
		Subnets: map[string]string{"subnet-b": "test-1b"},
		Reservations: []ec2test.Reservation{
			{ID: "cr-1", Type: "p5.48xlarge", Zone: "test-1a", Count: 1},
			{ID: "cr-block", Type: "p5.48xlarge", Zone: "test-1a", Count: 1, Block: true, Start: start,
				End: start.Add(24 * time.Hour)},
		},
	}
}

func testOffers() []aws.Offer {
	h100 := aws.Offer{InstanceType: "p5.48xlarge", Zone: "test-1a", Model: "h100-80g", GPUs: 8, MemoryMiB: 81_559,
		Price: priceOf(55 * money.USD)}
	spot, odcr, block := h100, h100, h100
	h100.Type, spot.Type, odcr.Type, block.Type = "p5", "p5-spot", "p5-odcr", "p5-block"
	spot.Market, spot.Price = aws.Spot, priceOf(20*money.USD)
	odcr.Market, odcr.ReservationID = aws.CapacityReservation, "cr-1"
	block.Market, block.ReservationID, block.Price = aws.CapacityBlock, "cr-block", priceOf(31*money.USD)
	block.From, block.Until = start, start.Add(24*time.Hour)
	l4 := aws.Offer{
		Type: "g6", InstanceType: "g6.12xlarge", Subnet: "subnet-b", Model: "l4-24g", GPUs: 4, MemoryMiB: 23_034,
		Price: priceOf(4_601_600), GPUName: "NVIDIA L4",
	}
	return []aws.Offer{h100, spot, odcr, block, l4}
}

func newSite(t testing.TB, config ec2test.Config) site {
	t.Helper()
	manual := clock.NewManual(start)
	s := site{Region: ec2test.New(config, manual), clock: manual}
	server := httptest.NewServer(s.Region)
	t.Cleanup(server.Close)
	credentials := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t,
		os.WriteFile(credentials,
			[]byte("[default]\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key=not-a-secret\n"), 0o600))
	s.config = aws.Config{
		Region: "test-central-1", Endpoint: server.URL, CredentialsFile: credentials, ImageID: image,
		SecurityGroups: []string{"sg-1"}, Offers: testOffers(), RetryWait: time.Nanosecond,
	}
	return s
}

func (s site) openProvisioner(t testing.TB) *aws.Provisioner {
	t.Helper()
	p, err := aws.New(s.config, s.clock)
	require.NoError(t, err)
	return p
}

// attempts is how often the SDK tries a request: a fault must outlast them.
const attempts = 3

func (s site) injectFault(action string, effect ec2test.Effect, code string) func() {
	times := attempts
	if effect == ec2test.Ignore || effect == ec2test.Garble {
		times = 1
	}
	return func() { s.Inject(ec2test.Fault{Action: action, Effect: effect, Code: code, Times: times}) }
}

// suiteSubject is one offer of a fresh site under the suite.
func suiteSubject(t *testing.T, kind, other string) provisionertest.Subject {
	config := regionConfig()
	config.Tick = time.Second // the suite looks a second after the end
	s := newSite(t, config)
	return provisionertest.Subject{
		Provisioner: s.openProvisioner(t),
		Reopen:      func(t *testing.T) provisioners.Provisioner { return s.openProvisioner(t) },
		Spec:        provisioners.Spec{Type: kind, Region: "test-central-1"},
		OtherSpec:   provisioners.Spec{Type: other, Region: "test-central-1"},
		Machines:    100,
		Advance:     func(d time.Duration) { s.clock.Advance(d) },
		BootWithin:  10 * time.Minute, GoneWithin: 5 * time.Minute,
		TimeOutCreate: s.injectFault("RunInstances", ec2test.LoseAnswer, ""),
		TimeOutDelete: s.injectFault("TerminateInstances", ec2test.LoseAnswer, ""),
		TruncateList:  s.injectFault("DescribeInstances", ec2test.Garble, ""),
		RunOut:        s.SellOut,
		FailCreate:    s.injectFault("DescribeInstances", ec2test.Refuse, "InternalError"),
		// Create looks before it leaps
		FailDelete:   s.injectFault("TerminateInstances", ec2test.Refuse, "InternalError"),
		IgnoreDelete: s.injectFault("TerminateInstances", ec2test.Ignore, ""),
		Throttle: func(calls int) {
			if s.Mend(); calls > 0 {
				s.Inject(ec2test.Fault{Effect: ec2test.Refuse, Code: "RequestLimitExceeded", Times: calls})
			}
		},
		LagList:   func(lag time.Duration) { s.SetLag(lag, 0) },
		Foreign:   func() func() bool { return s.Foreign("p5.48xlarge", map[string]string{"Name": "theirs"}) },
		Reclaim:   func(id string) { s.Reclaim(id) },
		Now:       s.clock.Now,
		Histories: 20,
	}
}

func TestConformanceOnDemand(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		s := suiteSubject(t, "p5", "g6")
		s.Reclaim = nil // EC2 does not reclaim what is paid on demand
		return s
	}})
}

// The other offer is in another zone, where EC2 does not know the first one's
// tokens.
func TestConformanceSpot(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		return suiteSubject(t, "p5-spot", "g6")
	}})
}
