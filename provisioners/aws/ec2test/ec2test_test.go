package ec2test_test

import (
	"encoding/base64"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners/aws/ec2test"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// account is a fake region behind a server, spoken to without an SDK.
type account struct {
	*ec2test.Region
	t     *testing.T
	clock *clock.Manual
	url   string
}

func openAccount(t *testing.T, config ec2test.Config) account {
	t.Helper()
	manual := clock.NewManual(start)
	region := ec2test.New(config, manual)
	server := httptest.NewServer(region)
	t.Cleanup(server.Close)
	return account{Region: region, t: t, clock: manual, url: server.URL}
}

// answer is any answer; what it is not stays empty.
type answer struct {
	Code      string   `xml:"Errors>Error>Code"`
	Launched  []row    `xml:"instancesSet>item"`
	Described []row    `xml:"reservationSet>item>instancesSet>item"`
	Next      string   `xml:"nextToken"`
	Output    string   `xml:"output"`
	Spot      []string `xml:"spotInstanceRequestSet>item>status>code"`
	Events    []string `xml:"instanceStatusSet>item>eventsSet>item>code"`
	Disks     []string `xml:"imagesSet>item>blockDeviceMapping>item>deviceName"`
}

type row struct {
	ID         string   `xml:"instanceId"`
	State      string   `xml:"instanceState>name"`
	Current    string   `xml:"currentState>name"`
	Launch     string   `xml:"launchTime"`
	Transition string   `xml:"reason"`
	Reason     string   `xml:"stateReason>code"`
	Zone       string   `xml:"placement>availabilityZone"`
	Tags       []string `xml:"tagSet>item>key"`
}

// mustCall sends Name=value pairs.
func (a account) mustCall(action string, pairs ...string) answer {
	a.t.Helper()
	got, status := a.callAPI(action, pairs...)
	require.Equal(a.t, http.StatusOK, status, "%s: %s", action, got.Code)
	return got
}

func (a account) mustRefuse(action string, pairs ...string) string {
	a.t.Helper()
	got, status := a.callAPI(action, pairs...)
	require.NotEqual(a.t, http.StatusOK, status)
	return got.Code
}

func (a account) callAPI(action string, pairs ...string) (answer, int) {
	a.t.Helper()
	form := url.Values{"Action": {action}, "Version": {"2016-11-15"}}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		form.Set(name, value)
	}
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url, strings.NewReader(form.Encode()))
	require.NoError(a.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=AKID/20260302/test-1/ec2/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	var got answer
	require.NoError(a.t, xml.Unmarshal(body, &got), "%s", body)
	return got, resp.StatusCode
}

var launch = []string{"MinCount=1", "MaxCount=1", "ImageId=ami-0123456789abcdef0", "InstanceType=p5.48xlarge"}

func withLaunch(pairs ...string) []string { return append(append([]string{}, launch...), pairs...) }

func (a account) launchInstance(pairs ...string) row {
	a.t.Helper()
	return a.mustCall("RunInstances", withLaunch(pairs...)...).Launched[0]
}

func (a account) instanceState(id string) string {
	a.t.Helper()
	return a.mustCall("DescribeInstances", "InstanceId.1="+id).Described[0].State
}

func TestALife(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{})
	a.clock.Advance(1500 * time.Millisecond)
	made := a.launchInstance()
	require.Equal(t, "2026-03-02T09:00:01.000Z", made.Launch, "to the second")
	require.Equal(t, "pending", made.State)
	a.clock.Advance(20 * time.Second)
	require.Equal(t, "running", a.instanceState(made.ID))
	a.clock.Advance(time.Minute)
	require.Equal(t, "shutting-down", a.mustCall("TerminateInstances", "InstanceId.1="+made.ID).Launched[0].Current)
	a.clock.Advance(30 * time.Second)
	over := a.mustCall("DescribeInstances", "InstanceId.1="+made.ID).Described[0]
	require.Equal(t, "terminated", over.State)
	require.Equal(t, "User initiated (2026-03-02 09:01:21 GMT)", over.Transition)
	a.mustCall("TerminateInstances", "InstanceId.1="+made.ID) // as often as one likes
	a.clock.Advance(time.Hour)
	require.Equal(t, "InvalidInstanceID.NotFound", a.mustRefuse("DescribeInstances", "InstanceId.1="+made.ID))
	require.Equal(t, "InvalidInstanceID.NotFound", a.mustRefuse("TerminateInstances", "InstanceId.1="+made.ID))
	require.Equal(t, "InvalidInstanceID.Malformed", a.mustRefuse("TerminateInstances", "InstanceId.1=../x"))
	require.Equal(t, 80*time.Second, a.Bill()[0].Billed)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{Subnets: map[string]string{"subnet-b": "test-1b"}})
	token := "ClientToken=token-1"
	made := a.launchInstance(token)
	require.Equal(t, made.ID, a.launchInstance(token).ID)
	require.Equal(t, "IdempotentParameterMismatch", a.mustRefuse("RunInstances", withLaunch(token, "KeyName=other")...))
	// A token that goes with a zone is another one, and so is each zone's.
	inA, inB := a.launchInstance(token, "Placement.AvailabilityZone=test-1a"),
		a.launchInstance(token, "SubnetId=subnet-b")
	require.NotEqual(t, inA.ID, inB.ID)
	require.NotEqual(t, made.ID, inA.ID)
	require.Equal(t, inB.ID, a.launchInstance(token, "SubnetId=subnet-b").ID)

	a.mustCall("TerminateInstances", "InstanceId.1="+made.ID)
	require.Equal(t, "shutting-down", a.launchInstance(token).State)
	a.clock.Advance(time.Minute)
	require.Equal(t, "IdempotentInstanceTerminated", a.mustRefuse("RunInstances", withLaunch(token)...))
	a.clock.Advance(24 * time.Hour)
	require.NotEqual(t, made.ID, a.launchInstance(token).ID, "a day later nobody knows the token")
}

func TestWhatCannotBeMade(t *testing.T) {
	t.Parallel()
	block := ec2test.Reservation{ID: "cr-1", Type: "p5.48xlarge", Zone: "test-1a", Count: 1, Block: true,
		Start: start.Add(time.Hour), End: start.Add(9 * time.Hour)}
	types := ec2test.Config{}.WithDefaults().Types
	types[1].MissesFrom = []string{"test-1b"}
	a := openAccount(t, ec2test.Config{Types: types, VCPULimit: 200, Reservations: []ec2test.Reservation{block}})
	reserved := "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId="
	for want, pairs := range map[string][]string{
		"UnknownParameter":          {"Colour=blue"},
		"InvalidParameterValue":     {"InstanceType=p99.large"},
		"InvalidAMIID.NotFound":     {"ImageId=ami-0"},
		"InvalidSubnetID.NotFound":  {"SubnetId=subnet-0"},
		"InvalidGroup.NotFound":     {"SecurityGroupId.1=sg-0"},
		"InvalidBlockDeviceMapping": {"BlockDeviceMapping.1.DeviceName=/dev/sdz"},
		"InvalidUserData.Malformed": {"UserData=%%%"},
		"Unsupported":               {"InstanceType=g6.12xlarge", "Placement.AvailabilityZone=test-1b"},
		"SpotMaxPriceTooLow": {"InstanceMarketOptions.MarketType=spot",
			"InstanceMarketOptions.SpotOptions.MaxPrice=0.10"},
		"InvalidCapacityReservationId.NotFound": {reserved + "cr-0"},
		"ReservationCapacityExceeded":           {reserved + "cr-1", "InstanceMarketOptions.MarketType=capacity-block"},
	} {
		require.Equal(t, want, a.mustRefuse("RunInstances", withLaunch(pairs...)...))
	}
	for _, pairs := range [][]string{
		{"MaxCount=2"}, {"Placement.AvailabilityZone=mars-1a"}, {"ClientToken=" + strings.Repeat("t", 65)},
		{"UserData=" + base64.StdEncoding.EncodeToString(make([]byte, 16_385))},
		{"MetadataOptions.InstanceMetadataTags=enabled", "TagSpecification.1.ResourceType=instance",
			"TagSpecification.1.Tag.1.Key=a/b"},
		{reserved + "cr-1"},
	} {
		require.Equal(t, "InvalidParameterValue", a.mustRefuse("RunInstances", withLaunch(pairs...)...), "%v", pairs)
	}
	a.launchInstance()
	require.Equal(t, "VcpuLimitExceeded", a.mustRefuse("RunInstances", launch...))
	a.SetStock("test-1a", "p5.48xlarge", 1)
	require.Equal(t, "InsufficientInstanceCapacity",
		a.mustRefuse("RunInstances", withLaunch("InstanceMarketOptions.MarketType=spot")...))
	require.Equal(t, "InvalidAction", a.mustRefuse("LaunchRockets"))
	require.Len(t, a.Bill(), 1)
}

func TestBlocksEndEarly(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{Reservations: []ec2test.Reservation{
		{ID: "cr-1", Type: "p5.48xlarge", Zone: "test-1a", Count: 1, Block: true, Start: start,
			End: start.Add(2 * time.Hour)},
	}})
	made := a.launchInstance("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId=cr-1",
		"InstanceMarketOptions.MarketType=capacity-block")
	a.clock.Advance(90*time.Minute - time.Second)
	require.Equal(t, "running", a.instanceState(made.ID))
	a.clock.Advance(time.Second)
	require.Equal(t, "shutting-down", a.instanceState(made.ID))
}

func TestPagesAndFilters(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{PageSize: 2})
	tags := func(value string) []string {
		return []string{"TagSpecification.1.ResourceType=instance", "TagSpecification.1.Tag.1.Key=owner",
			"TagSpecification.1.Tag.1.Value=" + value}
	}
	for _, owner := range []string{"a", "a", "a", "ab", "a*"} {
		a.launchInstance(tags(owner)...)
	}
	count := func(pattern string) int {
		total, next := 0, ""
		for {
			pairs := []string{"Filter.1.Name=tag:owner", "Filter.1.Value.1=" + pattern, "MaxResults=100"}
			if next != "" {
				pairs = append(pairs, "NextToken="+next)
			}
			got := a.mustCall("DescribeInstances", pairs...)
			require.LessOrEqual(t, len(got.Described), 2)
			total += len(got.Described)
			if next = got.Next; next == "" {
				return total
			}
		}
	}
	for pattern, want := range map[string]int{"a": 3, "a*": 5, "a?": 2, `a\*`: 1, "b": 0} {
		require.Equal(t, want, count(pattern), pattern)
	}
	require.Equal(t, "InvalidParameterValue", a.mustRefuse("DescribeInstances", "Filter.1.Name=colour",
		"Filter.1.Value.1=x"))
	require.Equal(t, "InvalidParameterValue", a.mustRefuse("DescribeInstances", "MaxResults=1"))
	require.Equal(t, "InvalidPaginationToken", a.mustRefuse("DescribeInstances", "NextToken=x"))
	id := a.Bill()[0].ID
	require.Equal(t, "InvalidParameterCombination", a.mustRefuse("DescribeInstances", "InstanceId.1="+id,
		"MaxResults=5"))
}

func TestLag(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{})
	a.SetLag(10*time.Second, 5*time.Second)
	made := a.launchInstance("ClientToken=token-1")
	require.Equal(t, "InvalidInstanceID.NotFound", a.mustRefuse("DescribeInstances", "InstanceId.1="+made.ID))
	require.Empty(t, a.mustCall("DescribeInstances").Described)
	require.Equal(t, made.ID, a.launchInstance("ClientToken=token-1").ID, "a token is known at once")
	require.Equal(t, "InvalidInstanceID.NotFound",
		a.mustRefuse("CreateTags", "ResourceId.1="+made.ID, "Tag.1.Key=k", "Tag.1.Value=v"))
	a.clock.Advance(10 * time.Second)
	a.mustCall("CreateTags", "ResourceId.1="+made.ID, "Tag.1.Key=k", "Tag.1.Value=v")
	require.Empty(t, a.mustCall("DescribeInstances").Described[0].Tags, "as it was")
	a.clock.Advance(10 * time.Second)
	require.Equal(t, []string{"k"}, a.mustCall("DescribeInstances").Described[0].Tags)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{})
	made := a.launchInstance()
	a.Inject(ec2test.Fault{Action: "RunInstances", Effect: ec2test.Refuse, Code: "InternalError", Times: 2})
	for range 2 {
		_, status := a.callAPI("RunInstances", launch...)
		require.Equal(t, http.StatusInternalServerError, status)
	}
	a.launchInstance()
	a.Inject(ec2test.Fault{Action: "TerminateInstances", Effect: ec2test.Ignore})
	require.Equal(t, "shutting-down", a.mustCall("TerminateInstances", "InstanceId.1="+made.ID).Launched[0].Current)
	require.Equal(t, "pending", a.instanceState(made.ID), "it was accepted, and nothing happened")
	a.Inject(ec2test.Fault{Effect: ec2test.Refuse, Code: "RequestLimitExceeded", Times: 100})
	_, status := a.callAPI("DescribeImages")
	require.Equal(t, http.StatusServiceUnavailable, status)
	a.Mend()
	require.Equal(t, []string{"/dev/sda1"}, a.mustCall("DescribeImages", "ImageId.1=ami-0123456789abcdef0").Disks)
	require.Equal(t, "InvalidAMIID.NotFound", a.mustRefuse("DescribeImages", "ImageId.1=ami-0"))
}

func TestSpotReclaim(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{})
	made := a.launchInstance("InstanceMarketOptions.MarketType=spot")
	a.clock.Advance(time.Hour)
	a.Reclaim(made.ID)
	a.Reclaim(made.ID)
	a.clock.Advance(2*time.Minute - time.Second)
	require.Equal(t, "running", a.instanceState(made.ID))
	require.Equal(t, []string{"instance-terminated-no-capacity"},
		a.mustCall("DescribeSpotInstanceRequests", "Filter.1.Name=instance-id", "Filter.1.Value.1="+made.ID).Spot)
	a.clock.Advance(time.Second)
	over := a.mustCall("DescribeInstances", "InstanceId.1="+made.ID).Described[0]
	require.Equal(t, "shutting-down", over.State)
	require.Equal(t, "Server.SpotInstanceTermination", over.Reason)
	require.Equal(t, "Service initiated (2026-03-02 10:02:00 GMT)", over.Transition)
	require.Equal(t, "InvalidParameterValue", a.mustRefuse("DescribeSpotInstanceRequests", "Filter.1.Name=colour",
		"Filter.1.Value.1=x"))
}

func TestTheGuestDoesWhatItsUserDataSays(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{})
	data := "UserData=" +
		base64.StdEncoding.EncodeToString([]byte("forewarm-gpus forewarm:expires-at FOREWARM_UNCLAIMED_S=3600"))
	plain, ours := a.launchInstance(), a.launchInstance(data)
	a.clock.Advance(3 * time.Minute)
	output := func(id string) string {
		text, err := base64.StdEncoding.DecodeString(a.mustCall("GetConsoleOutput", "InstanceId="+id,
			"Latest=true").Output)
		require.NoError(t, err)
		return string(text)
	}
	require.NotContains(t, output(plain.ID), "forewarm-gpus")
	require.Contains(t, output(ours.ID), "forewarm-gpus ")
	a.mustCall("CreateTags", "ResourceId.1="+ours.ID, "Tag.1.Key=forewarm:expires-at",
		"Tag.1.Value=2026-03-02T09:30:00Z")
	forgotten := a.launchInstance(data) // never told its end
	a.clock.Set(start.Add(30*time.Minute + 19*time.Second))
	require.Equal(t, "running", a.instanceState(ours.ID), "it looks once a minute")
	a.clock.Advance(time.Second)
	over := a.mustCall("DescribeInstances", "InstanceId.1="+ours.ID).Described[0]
	require.Equal(t, "shutting-down", over.State)
	require.Equal(t, "Client.InstanceInitiatedShutdown", over.Reason)
	require.Empty(t, over.Transition)
	a.clock.Advance(2 * time.Hour)
	require.Equal(t, "InvalidInstanceID.NotFound", a.mustRefuse("DescribeInstances", "InstanceId.1="+forgotten.ID))
	require.Equal(t, "running", a.instanceState(plain.ID))
}

func TestForeignMachinesAndEvents(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{})
	stands := a.Foreign("g6.12xlarge", map[string]string{"team": "other"})
	a.clock.Advance(time.Minute)
	id := a.Bill()[0].ID
	a.Schedule(id, "system-reboot", "reboot", start.Add(time.Hour))
	require.Equal(t, []string{"system-reboot"}, a.mustCall("DescribeInstanceStatus", "Filter.1.Name=event.code",
		"Filter.1.Value.1=system-reboot").Events)
	require.Empty(t, a.mustCall("DescribeInstanceStatus", "Filter.1.Name=event.code",
		"Filter.1.Value.1=instance-stop").Events)
	require.True(t, stands())
	a.mustCall("TerminateInstances", "InstanceId.1="+id)
	require.False(t, stands())
}

func TestTheBill(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{})
	short, long := a.launchInstance(), a.launchInstance("InstanceMarketOptions.MarketType=spot")
	a.clock.Advance(10 * time.Second)
	a.mustCall("TerminateInstances", "InstanceId.1="+short.ID)
	a.clock.Advance(time.Hour - 10*time.Second)
	lines := a.Bill()
	require.Equal(t, (55 * money.USD).For(time.Minute), lines[0].Cost, "a minute at least")
	require.Equal(t, 20*money.USD, lines[1].Cost)
	require.Equal(t, []ec2test.Line{lines[1]}, a.LiveLines())
	require.Equal(t, long.ID, lines[1].ID)
}

func TestOnlyKnownKeysMayCall(t *testing.T) {
	t.Parallel()
	a := openAccount(t, ec2test.Config{AccessKeys: []string{"OTHER"}})
	require.Equal(t, "AuthFailure", a.mustRefuse("DescribeInstances"))
	resp, err := http.PostForm(a.url, url.Values{"Action": {"DescribeInstances"}})
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
}
