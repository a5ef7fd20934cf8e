//go:build clouds

package aws_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws"
	"github.com/forewarm/forewarm/provisioners/aws/ec2test"
)

func TestDevicesAreWhatTheMachineReports(t *testing.T) {
	t.Parallel()
	errors := uint64(3)
	for name, test := range map[string]struct {
		kind    string
		change  func([]ec2test.GPU) []ec2test.GPU
		devices int
		model   string
		notice  provisioners.NoticeKind
	}{
		"as offered": {"p5", func(g []ec2test.GPU) []ec2test.GPU { return g }, 8, "h100-80g", ""},
		"one lost":   {"p5", func(g []ec2test.GPU) []ec2test.GPU { return g[1:] }, 7, "h100-80g", ""},
		"memory errors": {"p5", func(g []ec2test.GPU) []ec2test.GPU { g[2].ECC = &errors; return g }, 7, "h100-80g",
			provisioners.NoticeDegraded},
		"no counter":    {"p5", func(g []ec2test.GPU) []ec2test.GPU { g[2].ECC = nil; return g }, 8, "h100-80g", ""},
		"the right GPU": {"g6", func(g []ec2test.GPU) []ec2test.GPU { return g }, 4, "l4-24g", ""},
		"another GPU": {"g6", func(g []ec2test.GPU) []ec2test.GPU { g[0].Name = "NVIDIA T4"; return g }, 4,
			"NVIDIA T4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, regionConfig())
			p := s.openProvisioner(t)
			made := createInstance(t, p, test.kind)
			s.SetGPUs(made.ID, test.change)
			s.clock.Advance(5 * time.Minute)
			got, err := p.Get(t.Context(), made.ID)
			require.NoError(t, err)
			require.Equal(t, provisioners.Running, got.Phase)
			require.Len(t, got.Devices, test.devices)
			require.Equal(t, test.model, got.Devices[0].Model)
			if test.notice == "" {
				require.Nil(t, got.Notice)
				return
			}
			require.Equal(t, test.notice, got.Notice.Kind)
			require.Contains(t, got.Notice.Message, "3 uncorrected memory errors")
		})
	}
}

func TestAMachineThatDoesNotReportIsNotUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	made := createInstance(t, p, "p5")
	s.SetGPUs(made.ID, func([]ec2test.GPU) []ec2test.GPU { return nil })
	for range 100 {
		s.clock.Advance(2 * time.Second)
		got, err := p.Get(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, provisioners.Booting, got.Phase)
		require.Empty(t, got.Address)
	}
	require.Less(t, s.Calls("GetConsoleOutput"), 22, "it is looked at every 10 s")
}

func TestReportsAreReadAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	made := s.createRunning(t, p, "p5")
	for range 5 {
		s.clock.Advance(time.Minute)
		_, err := p.Get(t.Context(), made.ID)
		require.NoError(t, err)
	}
	require.Equal(t, 1, s.Calls("GetConsoleOutput"))
	s.SetGPUs(made.ID, func(g []ec2test.GPU) []ec2test.GPU { return g[:7] })
	s.Inject(ec2test.Fault{Action: "GetConsoleOutput", Effect: ec2test.Refuse, Code: "InternalError", Times: attempts})
	s.clock.Advance(6 * time.Minute)
	got, err := p.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Len(t, got.Devices, 8, "an old report is better than no answer")
	got, err = p.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Len(t, got.Devices, 7)
	s.SetGPUs(made.ID, func([]ec2test.GPU) []ec2test.GPU { return nil }) // the line scrolled away
	s.clock.Advance(11 * time.Minute)
	got, err = p.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Len(t, got.Devices, 7)
}

func TestListKnowsWhatGetHasRead(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	made := s.createRunning(t, p, "p5")
	list, err := p.List(t.Context(), "dep")
	require.NoError(t, err)
	require.Equal(t, []provisioners.Instance{made}, list.Instances)
	calls := s.Calls("GetConsoleOutput")
	list, err = s.openProvisioner(t).List(t.Context(), "dep")
	require.NoError(t, err)
	require.Equal(t, provisioners.Booting, list.Instances[0].Phase, "nobody in this process has looked")
	require.Equal(t, calls, s.Calls("GetConsoleOutput"))
}

func TestNoProbe(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.config.Probe, s.config.Address = aws.ProbeNone, aws.Public
	p := s.openProvisioner(t)
	made := createInstance(t, p, "g6")
	s.clock.Advance(30 * time.Second)
	got, err := p.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
	require.Contains(t, got.Address, "198.")
	require.Len(t, got.Devices, 4)
	for i, device := range got.Devices {
		require.Equal(t, capacity.Device{UUID: fmt.Sprintf("%s-gpu-%d", made.ID, i), Index: i, Model: "l4-24g",
			MemoryMiB: 23_034}, device)
	}
	require.Zero(t, s.Calls("GetConsoleOutput"))
}

func TestSpotNotices(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"instance-terminated-no-capacity", "marked-for-termination",
		"instance-terminated-by-price"} {
		s := newSite(t, regionConfig())
		p := s.openProvisioner(t)
		made := s.createRunning(t, p, "p5-spot")
		s.Reclaim(made.ID, code)
		got, err := p.Get(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, provisioners.NoticeInterruption, got.Notice.Kind)
		require.Equal(t, start.Add(7*time.Minute), got.Notice.At)
		require.Contains(t, got.Notice.Message, code)
		list, err := p.List(t.Context(), "dep")
		require.NoError(t, err)
		require.Equal(t, got.Notice, list.Instances[0].Notice)
		s.clock.Advance(2 * time.Minute)
		got, err = p.Get(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, provisioners.Terminating, got.Phase)
		require.Equal(t, start.Add(7*time.Minute), got.EndedAt)
		require.Nil(t, got.Notice)
	}
}

func TestScheduledEvents(t *testing.T) {
	t.Parallel()
	soon := start.Add(48 * time.Hour)
	for name, test := range map[string]struct {
		code, text string
		want       provisioners.NoticeKind
	}{
		"retirement": {"instance-retirement", "The instance is running on degraded hardware",
			provisioners.NoticeExpiring},
		"stop":        {"instance-stop", "The instance is running on degraded hardware", provisioners.NoticeExpiring},
		"reboot":      {"system-reboot", "scheduled reboot", provisioners.NoticeDegraded},
		"maintenance": {"system-maintenance", "scheduled maintenance", provisioners.NoticeDegraded},
		"completed":   {"system-reboot", "[Completed] scheduled reboot", ""},
		"canceled":    {"instance-retirement", "[Canceled] degraded", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, regionConfig())
			p := s.openProvisioner(t)
			made := s.createRunning(t, p, "p5")
			s.Schedule(made.ID, test.code, test.text, soon)
			s.Schedule(made.ID, test.code, test.text, soon.Add(time.Hour))
			s.clock.Advance(time.Minute) // the table of events is read once a minute
			got, err := p.Get(t.Context(), made.ID)
			require.NoError(t, err)
			if test.want == "" {
				require.Nil(t, got.Notice)
				return
			}
			require.Equal(t, &provisioners.Notice{Kind: test.want, At: soon, Message: test.code + ": " + test.text},
				got.Notice)
			reads := s.Calls("DescribeInstanceStatus")
			_, err = p.List(t.Context(), "dep")
			require.NoError(t, err)
			require.Equal(t, reads, s.Calls("DescribeInstanceStatus"))
		})
	}
}

func TestTheEndOfABlock(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	made := s.createRunning(t, p, "p5-block")
	require.Nil(t, made.Notice, "it is a day away")
	usable := start.Add(24*time.Hour - 40*time.Minute)
	s.clock.Set(usable.Add(-15 * time.Minute))
	got, err := p.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.NoticeExpiring, got.Notice.Kind)
	require.Equal(t, usable, got.Notice.At)
	s.clock.Set(start.Add(24*time.Hour - 30*time.Minute))
	got, err = p.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminating, got.Phase)
}

// What the fake bills is what a ledger reckons from the port alone.
func TestTheBillIsTheSumOfTheMachines(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	p := s.openProvisioner(t)
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	var sum money.MicroUSD
	for i, life := range []time.Duration{3 * time.Second, 59 * time.Second, 61*time.Second + 700*time.Millisecond,
		47 * time.Minute, 7*time.Hour + time.Millisecond} {
		ids := map[string]money.MicroUSD{}
		for _, offer := range offers {
			wanted := testSpec(offer.Type)
			wanted.NodeID = fmt.Sprint("nod_", offer.Type, i)
			made, err := p.Create(t.Context(), fmt.Sprint("token-", offer.Type, i), wanted)
			require.NoError(t, err)
			ids[made.ID] = offer.Price
		}
		s.clock.Advance(life)
		for _, line := range s.LiveLines() {
			if line.Market == "spot" {
				s.Reclaim(line.ID)
				continue
			}
			require.NoError(t, p.Delete(t.Context(), line.ID))
		}
		s.clock.Advance(3*time.Minute + 300*time.Millisecond)
		for id, price := range ids {
			got, err := p.Get(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, provisioners.Terminated, got.Phase)
			require.False(t, got.EndedAt.IsZero())
			sum += price.For(max(got.EndedAt.Sub(got.CreatedAt), time.Minute))
		}
	}
	lines := s.Bill()
	require.Len(t, lines, 25)
	for _, line := range lines {
		sum -= line.Cost
	}
	require.Zero(t, sum, "what the account's bill says")
}
