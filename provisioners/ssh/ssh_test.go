package ssh_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/ssh"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

func testSpec(node string) provisioners.Spec {
	return provisioners.Spec{Type: "big", Region: "lab", Owner: "dep", NodeID: node}
}

func requireKind(t *testing.T, want provisioners.Kind, err error) {
	t.Helper()
	var typed *provisioners.Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, want, typed.Kind, "%v", err)
}

// claimMachine makes a machine and lets its setup end.
func (l *lab) claimMachine(f *ssh.Fleet, n int) provisioners.Instance {
	l.t.Helper()
	made, err := f.Create(l.t.Context(), fmt.Sprint("token-", n), testSpec(fmt.Sprint("nod_", n)))
	require.NoError(l.t, err)
	l.awaitDetached()
	return l.getInstance(f, made.ID)
}

func (l *lab) getInstance(f *ssh.Fleet, id string) provisioners.Instance {
	l.t.Helper()
	got, err := f.Get(l.t.Context(), id)
	require.NoError(l.t, err)
	return got
}

// machineOf is the machine that an instance is.
func (l *lab) machineOf(i provisioners.Instance) *machine {
	name, _, _ := strings.Cut(i.ID, ".")
	for _, m := range l.machines {
		if m.name == name {
			return m
		}
	}
	require.FailNow(l.t, "no machine", i.ID)
	return nil
}

func (l *lab) endMachine(f *ssh.Fleet, id string) provisioners.Instance {
	l.t.Helper()
	require.NoError(l.t, f.Delete(l.t.Context(), id))
	l.awaitDetached()
	return l.getInstance(f, id)
}

// countRuns counts how often a verb was run.
func (l *lab) countRuns(verb string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(" "+strings.Join(l.calls, " ")+" ", " "+verb+" ")
}

func TestOfferAndMachine(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	l.config.Boot = ssh.Boot{P50: time.Minute}
	f := l.openFleet()
	offers, err := f.Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 2, "two hosts of one type are one offer")
	require.Equal(t, provisioners.Offer{
		Type: "big", Region: "lab", Model: "h100-80g", GPUs: 2, MemoryMiB: 81_920, Price: 2_000_000,
		Boot: provisioners.Boot{P50: time.Minute, P95: time.Minute},
	}, offers[0])
	made := l.claimMachine(f, 1)
	require.Equal(t, provisioners.Running, made.Phase)
	require.Regexp(t, `^ssh://operator@127\.0\.0\.1:\d+$`, made.Address, "its holder comes as the adapter does")
	require.Equal(t, "h100-80g", made.Devices[1].Model)
	require.Equal(t, 81_559, made.Devices[1].MemoryMiB)
	list, err := f.List(t.Context(), "dep")
	require.NoError(t, err)
	require.Equal(t, []provisioners.Instance{made}, list.Instances)
	l.clock.Advance(time.Hour)
	ended := l.endMachine(f, made.ID)
	require.Equal(t, provisioners.Terminated, ended.Phase)
	require.Equal(t, start, ended.CreatedAt)
	require.Equal(t, start.Add(time.Hour), ended.EndedAt)
}

// Tags are the control plane's own, but nothing that comes from outside may ever
// be read by a shell.
func TestTagsAreNeverEvaluated(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	f := l.openFleet()
	nasty := "it's $(touch \"$HOME/hacked\") `touch ~/hacked` \\n\n; touch hacked; \"€"
	asked := provisioners.Spec{Type: "big", Owner: nasty, NodeID: nasty}
	made, err := f.Create(t.Context(), nasty, asked)
	require.NoError(t, err)
	l.awaitDetached()
	require.Equal(t, nasty, made.Owner)
	require.Equal(t, nasty, made.Token)
	list, err := f.List(t.Context(), nasty)
	require.NoError(t, err)
	require.Len(t, list.Instances, 1)
	require.Equal(t, nasty, l.getInstance(f, made.ID).NodeID)
	require.NoFileExists(t, filepath.Join(l.machineOf(made).home, "hacked"))
}

func TestSetup(t *testing.T) {
	l := newLab(t, 1)
	t.Setenv("FOREWARM_TEST_KEY", "it's a $secret")
	daemon := filepath.Join(t.TempDir(), "daemon")
	require.NoError(t, os.WriteFile(daemon, []byte("#!/bin/sh\necho \"I am $0\"; echo once >>runs\n"), 0o600))
	l.config.Setup = ssh.Setup{
		Copy: []ssh.File{{From: daemon, To: "opt/it's here/daemon", Mode: "0700"}},
		Commands: []string{
			`"opt/it's here/daemon" >said`,
			`printf '%s %s %s\n' "$FOREWARM_TEST_KEY" "$FOREWARM_NODE_ID" "$FOREWARM_OWNER" >env`,
			"sleep 1000 >/dev/null 2>&1 & echo $! >daemon.pid", // which may not hold anything up
		},
		Env: []string{"FOREWARM_TEST_KEY"},
	}
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	home := l.machineOf(made).home
	t.Cleanup(func() { require.NoError(t, killFromFile(filepath.Join(home, "daemon.pid"))) })
	require.Equal(t, provisioners.Running, made.Phase)
	for name, want := range map[string]string{
		"said": "I am opt/it's here/daemon\n", "env": "it's a $secret nod_1 dep\n", "runs": "once\n",
	} {
		text, err := os.ReadFile(filepath.Join(home, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	again, err := f.Create(t.Context(), "token-1", testSpec("nod_1"))
	require.NoError(t, err)
	require.Equal(t, made, again)
	require.Equal(t, 1, l.countRuns("boot"))
	require.Equal(t, 1, l.countRuns("put"))
	require.Equal(t, provisioners.Terminated, l.endMachine(f, made.ID).Phase)
	l.claimMachine(f, 2)
	require.Equal(t, 1, l.countRuns("put"), "what is there is not copied again")
}

// Commands that start the node's daemon are told what it needs to join.
func TestASetupThatStartsTheDaemon(t *testing.T) {
	t.Parallel()
	for _, starts := range []bool{true, false} {
		l := newLab(t, 1)
		l.config.Setup = ssh.Setup{Daemon: starts,
			Commands: []string{`echo "$FOREWARM_URL $FOREWARM_NODE_ID $FOREWARM_JOIN_TOKEN" >env`}}
		f := l.openFleet()
		require.Equal(t, starts, f.StartsDaemons())
		spec := testSpec("nod_1")
		spec.Daemon = provisioners.Daemon{URL: "https://forewarm.example", Token: "secret"}
		made, err := f.Create(t.Context(), "token-1", spec)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return l.getInstance(f, made.ID).Phase == provisioners.Running },
			time.Minute, 10*time.Millisecond)
		text, err := os.ReadFile(filepath.Join(l.machineOf(made).home, "env"))
		require.NoError(t, err)
		require.Equal(t, starts, string(text) == "https://forewarm.example nod_1 secret\n", string(text))
	}
}

// Whoever claims may die before the setup is started. The repeated call starts
// it.
func TestSetupAfterALostCall(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"claim", "boot", "missing", "put"} {
		l := newLab(t, 3)
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
		l.config.Setup = ssh.Setup{Copy: []ssh.File{{From: file, To: "file"}}, Commands: []string{"echo once >>runs"}}
		f := l.openFleet()
		l.injectFault(lost, mute)()
		_, err := f.Create(t.Context(), "token-1", testSpec("nod_1"))
		requireKind(t, provisioners.KindUnknown, err)
		l.awaitDetached()
		made := l.claimMachine(f, 1)
		require.Equal(t, provisioners.Running, made.Phase, lost)
		runs, err := os.ReadFile(filepath.Join(l.machineOf(made).home, "runs"))
		require.NoError(t, err)
		require.Equal(t, "once\n", string(runs), lost)
		list, err := f.List(t.Context(), "dep")
		require.NoError(t, err)
		require.Len(t, list.Instances, 1, lost)
	}
}

func TestSetupThatFails(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	l.config.Setup.Commands = []string{"echo no network; exit 7", "touch never"}
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	require.Equal(t, provisioners.Booting, made.Phase)
	require.Equal(t, provisioners.NoticeDegraded, made.Notice.Kind)
	require.Contains(t, made.Notice.Message, "(7): no network")
	require.NoFileExists(t, filepath.Join(l.machineOf(made).home, "never"))
	require.Equal(t, provisioners.Terminated, l.endMachine(f, made.ID).Phase)
}

func TestDeleteEndsASetupThatRuns(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	l.config.Setup.Commands = []string{"sh -c 'trap \"\" INT; sleep 1000; touch never'"}
	f := l.openFleet()
	made, err := f.Create(t.Context(), "token-1", testSpec("nod_1"))
	require.NoError(t, err)
	require.Equal(t, provisioners.Booting, made.Phase)
	require.Nil(t, made.Notice)
	ended := l.endMachine(f, made.ID)
	require.Equal(t, provisioners.Terminated, ended.Phase)
	require.NoFileExists(t, filepath.Join(l.machineOf(made).home, "never"))
}

// A machine that was not wiped is nobody's until it is.
func TestWipeThatFails(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	l.config.Wipe = []string{`[ -e clean ] || { echo still mounted; exit 3; }`}
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	ending := l.endMachine(f, made.ID)
	require.Equal(t, provisioners.Terminating, ending.Phase)
	require.Contains(t, ending.Notice.Message, "still mounted")
	_, err := f.Create(t.Context(), "token-2", testSpec("nod_2"))
	requireKind(t, provisioners.KindCapacity, err)
	l.machineOf(made).writeFile("clean", "")
	l.clock.Advance(time.Hour)
	ended := l.endMachine(f, made.ID)
	require.Equal(t, provisioners.Terminated, ended.Phase)
	require.Equal(t, start, ended.EndedAt, "its end was asked for then")
	l.claimMachine(f, 3)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	m := l.machineOf(made)
	const fine = "GPU-a, 0, NVIDIA H100, PCIe, 81559, 0\n"
	for name, test := range map[string]struct {
		rows string
		fit  int
		want string
	}{
		"fine, no ECC": {fine + "GPU-b, 1, NVIDIA H100, [N/A], [N/A]\n", 2, ""},
		"ECC errors": {fine + "GPU-b, 1, NVIDIA H100, 81559, 3\n", 1,
			"GPU-b has 3 uncorrected ECC errors; 1 of 2 GPUs are fit"},
		"one is gone":   {fine, 1, "1 of 2"},
		"little memory": {fine + "GPU-b, 1, NVIDIA H100, 40960, 0\n", 1, "has 40960 MiB"},
		"nonsense":      {fine + "Unable to determine the device handle\n", 1, "want 5 fields"},
		"no index":      {fine + "GPU-b, x, H100, 81559, 0\n", 1, "index"},
		"no UUID":       {fine + "b, 1, H100, 81559, 0\n", 1, "not the UUID"},
		"no number":     {fine + "GPU-b, 1, H100, lots, 0\n", 1, "memory"},
		"no count":      {fine + "GPU-b, 1, H100, 81559, many\n", 1, "ECC"},
	} {
		m.setDriverOutput(test.rows)
		got := l.getInstance(f, made.ID)
		require.Equal(t, provisioners.Running, got.Phase, name)
		require.Len(t, got.Devices, test.fit, name)
		if test.want == "" {
			require.Nil(t, got.Notice, name)
			continue
		}
		require.Equal(t, provisioners.NoticeDegraded, got.Notice.Kind, name)
		require.Contains(t, got.Notice.Message, test.want, name)
	}
}

func TestGPUName(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	l.config.Hosts[0].GPUName = "NVIDIA H200"
	_, err := l.openFleet().Create(t.Context(), "token-1", testSpec("nod_1"))
	requireKind(t, provisioners.KindCapacity, err)
	require.ErrorContains(t, err, `is "NVIDIA H100 80GB HBM3", not "NVIDIA H200"`)
}

// A machine that is failing is not handed out: another one is, or none.
func TestUnfitMachinesAreNotClaimed(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3)
	l.config.ProbeTimeout = 5 * time.Second // the one that hangs takes it all, and the others a moment
	l.machines[0].writeFile("broken", "")
	l.machines[1].writeFile("hang", "")
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	require.Equal(t, l.machines[2], l.machineOf(made))
	_, err := f.Create(t.Context(), "token-2", testSpec("nod_2"))
	requireKind(t, provisioners.KindCapacity, err)
	require.ErrorContains(t, err, "1 machines are taken, 2 are unfit")
	require.ErrorContains(t, err, "gpu-0: the probe ended with 1")
	require.ErrorContains(t, err, "gpu-1: the probe ended with 124")
}

// What a machine decided about a token it decided for good: the token may have
// gone on and been claimed elsewhere by somebody who walks at the same time.
func TestTokenThatPassedStaysAway(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	_, err := f.Create(t.Context(), "token-2", testSpec("nod_2"))
	requireKind(t, provisioners.KindCapacity, err)
	l.endMachine(f, made.ID)
	_, err = f.Create(t.Context(), "token-2", testSpec("nod_2"))
	requireKind(t, provisioners.KindCapacity, err)
	l.claimMachine(f, 3)
}

// Many control planes want few machines: each machine is had by one.
func TestRaceOfControlPlanes(t *testing.T) {
	t.Parallel()
	const machines, planes = 3, 9
	l := newLab(t, machines)
	ids := make([]string, planes)
	var group sync.WaitGroup
	for n := range planes {
		f := l.openFleet()
		group.Go(func() {
			// Two of them share a token.
			token, node := fmt.Sprint("token-", n/2), fmt.Sprint("nod_", n/2)
			made, err := f.Create(t.Context(), token, testSpec(node))
			if err == nil {
				ids[n] = made.ID
			}
		})
	}
	group.Wait()
	distinct := map[string]string{}
	for n, id := range ids {
		if id != "" {
			token := fmt.Sprint("token-", n/2)
			require.True(t, distinct[token] == "" || distinct[token] == id, "%s made %s and %s", token, distinct[token],
				id)
			distinct[token] = id
		}
	}
	require.Len(t, distinct, machines)
	list, err := l.openFleet().List(t.Context(), "dep")
	require.NoError(t, err)
	require.Len(t, list.Instances, machines)
}

func TestDamagedClaim(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	path := filepath.Join(l.machineOf(made).claimsFolder(), "claims", made.ID, "claim")
	for _, text := range []string{"", "{}", "{", `{"Version":2}`, `{"Version":1,"Else":1}`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := f.Get(t.Context(), made.ID)
		requireKind(t, provisioners.KindTransient, err)
		_, err = f.Create(t.Context(), "token-1", testSpec("nod_1"))
		requireKind(t, provisioners.KindTransient, err)
		list, err := f.List(t.Context(), "dep")
		require.NoError(t, err)
		require.False(t, list.Complete)
	}
}

// Tokens are remembered for more than a day after the end, and not for ever.
func TestTokensAreForgotten(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	l.endMachine(f, made.ID)
	ended := filepath.Join(l.machineOf(made).claimsFolder(), "claims", made.ID, "ended")
	aged := func(age time.Duration, other int) {
		then := time.Now().Add(-age) // the machine's own clock decides
		require.NoError(t, os.Chtimes(ended, then, then))
		l.endMachine(f, l.claimMachine(f, other).ID) // which tidies up
	}
	aged(47*time.Hour, 2)
	require.FileExists(t, ended)
	aged(49*time.Hour, 3)
	require.NoFileExists(t, ended)
	l.clock.Advance(time.Second)
	again := l.claimMachine(f, 1)
	require.Equal(t, provisioners.Running, again.Phase)
	require.NotEqual(t, made.ID, again.ID)
}
