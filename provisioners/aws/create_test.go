//go:build clouds

package aws_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws"
	"github.com/forewarm/forewarm/provisioners/aws/ec2test"
)

func testSpec(kind string) provisioners.Spec {
	return provisioners.Spec{Type: kind, Region: "test-central-1", Owner: "dep", NodeID: "nod_1"}
}

func createInstance(t *testing.T, p provisioners.Provisioner, kind string) provisioners.Instance {
	t.Helper()
	made, err := p.Create(t.Context(), "token-1", testSpec(kind))
	require.NoError(t, err)
	return made
}

// createRunning lets a machine boot and returns it as it runs.
func (s site) createRunning(t *testing.T, p provisioners.Provisioner, kind string) provisioners.Instance {
	t.Helper()
	made := createInstance(t, p, kind)
	s.clock.Advance(5 * time.Minute)
	got, err := p.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
	return got
}

func requireKind(t *testing.T, want provisioners.Kind, err error) *provisioners.Error {
	t.Helper()
	var typed *provisioners.Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, want, typed.Kind, "%v", err)
	return typed
}

func TestTheMachineIsTaggedFromItsBirth(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	createInstance(t, s.openProvisioner(t), "p5")
	line := s.Bill()[0]
	require.Equal(t, map[string]string{
		"Name": "forewarm nod_1", "forewarm:owner": "dep", "forewarm:node": "nod_1", "forewarm:token": "token-1",
		"forewarm:type": "p5", "forewarm:expires-at": "never",
	}, line.Tags)
	require.Equal(t, []string{"/dev/sda1"}, line.DeletedDisks, "a disk outlives its machine")
}

func TestMarkets(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]struct {
		market string
		price  money.MicroUSD
	}{
		"p5": {"on-demand", 55 * money.USD}, "p5-spot": {"spot", 20 * money.USD},
		"p5-odcr":  {"on-demand", 55 * money.USD},
		"p5-block": {"capacity-block", 31 * money.USD}, "g6": {"on-demand", 4_601_600},
	} {
		s := newSite(t, regionConfig())
		s.SellOut() // what is reserved is there all the same
		if kind != "p5-odcr" && kind != "p5-block" {
			s = newSite(t, regionConfig())
		}
		createInstance(t, s.openProvisioner(t), kind)
		s.clock.Advance(time.Hour)
		line := s.Bill()[0]
		require.Equal(t, want.market, line.Market, kind)
		require.Equal(t, want.price, line.Cost, kind)
	}
}

func TestWhatIsReservedIsNotMore(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	createInstance(t, p, "p5-odcr")
	second := testSpec("p5-odcr")
	second.NodeID = "nod_2"
	_, err := p.Create(t.Context(), "token-2", second)
	require.Equal(t, "test-1a/p5.48xlarge/capacity_reservation", requireKind(t, provisioners.KindCapacity, err).Scope)
}

func TestABlockIsClosedOutsideOfItsWindow(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, start, offers[3].From)
	require.Equal(t, start.Add(24*time.Hour-40*time.Minute), offers[3].Until)
	for _, at := range []time.Duration{-time.Second, 24*time.Hour - 55*time.Minute, 48 * time.Hour} {
		s.clock.Set(start.Add(at))
		_, err := p.Create(t.Context(), "token-1", testSpec("p5-block"))
		requireKind(t, provisioners.KindCapacity, err)
	}
	require.Zero(t, s.Calls("RunInstances"), "nobody needs to ask")
	s.clock.Set(start)
	createInstance(t, p, "p5-block")
}

// EC2 shows a machine for an hour after its end and knows its token for a day.
func TestALateDuplicate(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	made := createInstance(t, p, "p5")
	require.NoError(t, p.Delete(t.Context(), made.ID))
	for after, id := range map[time.Duration]string{30 * time.Minute: made.ID, 2 * time.Hour: "ended-token-1",
		23 * time.Hour: "ended-token-1"} {
		s.clock.Set(start.Add(after))
		late := testSpec("p5")
		late.ExpiresAt = start.Add(after + time.Hour)
		again, err := s.openProvisioner(t).Create(t.Context(), "token-1", late)
		require.NoError(t, err)
		require.Equal(t, provisioners.Terminated, again.Phase, "after %v", after)
		require.Equal(t, id, again.ID)
		require.Equal(t, "token-1", again.Token)
	}
	_, err := p.Get(t.Context(), "ended-token-1")
	requireKind(t, provisioners.KindNotFound, err)
	require.NoError(t, p.Delete(t.Context(), "ended-token-1"))
	require.Len(t, s.Bill(), 1)
}

// The operator changes the offer between two calls with the same token.
func TestAnOfferThatChanges(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*aws.Offer){
		"another zone":          func(o *aws.Offer) { o.Zone = "test-1b" },
		"another instance type": func(o *aws.Offer) { o.InstanceType = "g6.12xlarge" },
		"gone":                  func(o *aws.Offer) { o.Type = "renamed" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, regionConfig())
			made := createInstance(t, s.openProvisioner(t), "p5")
			change(&s.config.Offers[0])
			require.Equal(t, made.ID, createInstance(t, s.openProvisioner(t), "p5").ID)
			require.Len(t, s.LiveLines(), 1)
		})
	}
}

// EC2 refuses the token and does not show its machine: it may be too young.
func TestAnOfferThatChangesUnseen(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	createInstance(t, s.openProvisioner(t), "p5")
	s.SetLag(time.Minute, 0)
	s.config.KeyName = "new-key"
	p := s.openProvisioner(t)
	_, err := p.Create(t.Context(), "token-1", testSpec("p5"))
	requireKind(t, provisioners.KindUnknown, err)
	s.clock.Advance(2 * time.Minute)
	require.Equal(t, s.Bill()[0].ID, createInstance(t, p, "p5").ID)
	require.Len(t, s.Bill(), 1)
}

// A repeated token may be answered without the tags (boto/boto#619).
func TestAnAnswerWithoutTags(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	createInstance(t, s.openProvisioner(t), "p5")
	s.SetLag(time.Minute, 0)
	s.Inject(ec2test.Fault{Action: "RunInstances", Effect: ec2test.Untagged})
	again := createInstance(t, s.openProvisioner(t), "p5")
	require.Equal(t, "dep", again.Owner)
	require.Equal(t, "token-1", again.Token)
	require.Len(t, s.Bill(), 1)
}

// The machine exists, and cannot be told its end: the call is not over.
func TestAMachineThatCannotBeTaggedYet(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.SetLag(0, 10*time.Second)
	p := s.openProvisioner(t)
	expires := testSpec("p5")
	expires.ExpiresAt = start.Add(time.Hour)
	_, err := p.Create(t.Context(), "token-1", expires)
	requireKind(t, provisioners.KindUnknown, err)
	require.Equal(t, attempts, s.Calls("CreateTags"))
	s.clock.Advance(20 * time.Second)
	_, err = p.Create(t.Context(), "token-1", expires)
	require.NoError(t, err)
	require.Len(t, s.Bill(), 1)
	require.Equal(t, "2026-03-02T10:00:00Z", s.Bill()[0].Tags["forewarm:expires-at"])
}

// Who dies between the launch and the tag leaves a machine that ends itself.
func TestAMachineThatNobodyClaims(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.Inject(ec2test.Fault{Action: "CreateTags", Effect: ec2test.Refuse, Code: "UnauthorizedOperation"})
	_, err := s.openProvisioner(t).Create(t.Context(), "token-1", testSpec("p5"))
	requireKind(t, provisioners.KindUnknown, err)
	s.clock.Advance(59 * time.Minute)
	require.Len(t, s.LiveLines(), 1)
	s.clock.Advance(2 * time.Minute)
	require.Empty(t, s.LiveLines())
}

func TestRepetitionsKeepTheEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	expires := testSpec("p5")
	expires.ExpiresAt = start.Add(time.Hour)
	made, err := p.Create(t.Context(), "token-1", expires)
	require.NoError(t, err)
	require.NoError(t, p.Renew(t.Context(), made.ID, start.Add(3*time.Hour)))
	expires.ExpiresAt = start.Add(2 * time.Hour)
	_, err = p.Create(t.Context(), "token-1", expires)
	require.NoError(t, err)
	require.NoError(t, p.Renew(t.Context(), made.ID, start.Add(time.Minute)))
	require.Equal(t, "2026-03-02T12:00:00Z", s.Bill()[0].Tags["forewarm:expires-at"])
	s.SetBusy(made.ID, true)
	s.clock.Advance(4 * time.Hour)
	require.Len(t, s.LiveLines(), 1, "it ended under a running job")
	s.SetBusy(made.ID, false)
	s.clock.Advance(time.Minute)
	require.Empty(t, s.LiveLines())
	requireKind(t, provisioners.KindNotFound, p.Renew(t.Context(), made.ID, start.Add(9*time.Hour)))
	requireKind(t, provisioners.KindNotFound, p.Renew(t.Context(), "", start))
}

func TestTokensAndTagsThatEC2WouldNotTake(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	good := testSpec("p5")
	long := good
	long.NodeID = strings.Repeat("n", 250)
	elsewhere := good
	elsewhere.Region = "test-north-2"
	for name, test := range map[string]struct {
		token string
		spec  provisioners.Spec
	}{
		"a long token": {strings.Repeat("t", 65), good}, "not ASCII": {"tökén", good}, "a space": {"to ken", good},
		"a long tag": {"token", long}, "another region": {"token", elsewhere},
	} {
		_, err := p.Create(t.Context(), test.token, test.spec)
		require.Error(t, err, name)
		requireKind(t, provisioners.KindBadSpec, err)
	}
	require.Empty(t, s.Bill())
	_, err := p.Create(t.Context(), strings.Repeat("t", 64), good)
	require.NoError(t, err)
	elsewhere.Region = ""
	_, err = p.Create(t.Context(), "token-2", elsewhere)
	require.NoError(t, err, "no region is any")
}

// One lost answer is not worth an error: the SDK asks again with the same token.
func TestTheSDKRepeats(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	s.Inject(ec2test.Fault{Action: "RunInstances", Effect: ec2test.LoseAnswer, Times: attempts - 1})
	createInstance(t, p, "p5")
	require.Len(t, s.Bill(), 1)
	require.Equal(t, attempts, s.Calls("RunInstances"))
}

// A refusal says nothing about the attempt before it, whose answer was lost.
func TestARefusalAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"UnauthorizedOperation", "InsufficientInstanceCapacity", "InvalidParameterValue",
		"RequestLimitExceeded"} {
		s := newSite(t, regionConfig())
		s.Inject(ec2test.Fault{Action: "RunInstances", Effect: ec2test.LoseAnswer})
		s.Inject(ec2test.Fault{Action: "RunInstances", Effect: ec2test.Refuse, Code: code, Times: attempts - 1})
		p := s.openProvisioner(t)
		_, err := p.Create(t.Context(), "token-1", testSpec("p5"))
		requireKind(t, provisioners.KindUnknown, err)
		s.Mend()
		require.Equal(t, s.Bill()[0].ID, createInstance(t, p, "p5").ID)
		require.Len(t, s.Bill(), 1)
	}
}

// What else there is to know of a new machine does not decide whether it is one.
func TestAnnouncementsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.Inject(ec2test.Fault{Action: "DescribeInstanceStatus", Effect: ec2test.Refuse, Code: "UnauthorizedOperation",
		Times: 2})
	p := s.openProvisioner(t)
	made := createInstance(t, p, "p5")
	require.Equal(t, provisioners.Booting, made.Phase)
	require.Equal(t, "token-1", made.Token)
	_, err := p.Get(t.Context(), made.ID)
	requireKind(t, provisioners.KindDenied, err)
}

func TestAStockOutIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.SellOut()
	_, err := s.openProvisioner(t).Create(t.Context(), "token-1", testSpec("p5"))
	typed := requireKind(t, provisioners.KindCapacity, err)
	require.Equal(t, "test-1a/p5.48xlarge", typed.Scope)
	require.Contains(t, typed.Message, "sufficient p5.48xlarge capacity")
	require.Equal(t, 1, s.Calls("RunInstances"), "it comes with a status of 500, and is an answer")
}

func TestUserDataOfTheOperator(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.config.UserDataFile = filepath.Join(t.TempDir(), "user-data")
	require.NoError(t, os.WriteFile(s.config.UserDataFile, []byte("#!/bin/sh\ntouch /tmp/ours\n"), 0o600))
	s.config.RootVolumeGiB = 200
	createInstance(t, s.openProvisioner(t), "p5")
	require.NoError(t, os.WriteFile(s.config.UserDataFile, []byte("hello"), 0o600))
	_, err := aws.New(s.config, s.clock)
	require.ErrorContains(t, err, "user_data_file: it begins neither")
	require.NotContains(t, err.Error(), base64.StdEncoding.EncodeToString([]byte("hello")))
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	write := func(text string) {
		s.config.CredentialsFile = filepath.Join(t.TempDir(), "credentials")
		require.NoError(t, os.WriteFile(s.config.CredentialsFile, []byte(text), 0o600))
	}
	write("[default]\naws_access_key_id=AKIAWRONG\naws_secret_access_key=hush-hush\n")
	p := s.openProvisioner(t)
	_, err := p.Create(t.Context(), "token-1", testSpec("p5"))
	requireKind(t, provisioners.KindDenied, err)
	require.NotContains(t, err.Error(), "hush-hush")
	_, err = p.List(t.Context(), "dep")
	requireKind(t, provisioners.KindDenied, err)

	write("[default]\ncredential_process = /bin/false\n")
	_, err = s.openProvisioner(t).Create(t.Context(), "token-1", testSpec("p5"))
	requireKind(t, provisioners.KindDenied, err)
	require.Empty(t, s.Bill())

	s.config.Profile = "nobody"
	_, err = aws.New(s.config, s.clock)
	require.ErrorContains(t, err, "nobody")
}

func TestACallIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	made := createInstance(t, p, "p5")
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := p.Get(ctx, made.ID)
	requireKind(t, provisioners.KindTransient, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, p.Renew(ctx, made.ID, start), context.DeadlineExceeded)
}
