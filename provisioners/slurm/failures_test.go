package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

func testSpec(kind, node string) provisioners.Spec {
	return provisioners.Spec{Type: kind, Owner: "dep", NodeID: node}
}

// What sbatch says, as 22.05.8 said it or as slurm_errno.c has it.
func TestRefusalsOfSbatch(t *testing.T) {
	t.Parallel()
	badSpec := provisioners.Error{Kind: provisioners.KindBadSpec}
	denied := provisioners.Error{Kind: provisioners.KindDenied}
	throttled := provisioners.Error{Kind: provisioners.KindThrottled}
	transient := provisioners.Error{Kind: provisioners.KindTransient}
	unknown := provisioners.Error{Kind: provisioners.KindUnknown}
	for said, want := range map[string]provisioners.Error{
		"Invalid partition name specified":                           badSpec,
		"Requested node configuration is not available":              badSpec,
		"Invalid account or account/partition combination specified": badSpec,
		"Invalid qos specification":                                  badSpec,
		"Invalid feature specification":                              badSpec,
		"Requested reservation is invalid":                           badSpec,
		"Access denied to requested reservation":                     denied,
		"User's group not permitted to use this partition":           denied,
		"Access/permission denied":                                   denied,
		"Required partition not available (inactive or drain)":       {Kind: provisioners.KindCapacity, Scope: "gpu"},
		"Requested nodes are busy":                                   {Kind: provisioners.KindCapacity, Scope: "gpu"},
		"Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)": {
			Kind: provisioners.KindQuota, Scope: "QOSMaxGRESPerUser",
		},
		"Slurm temporarily unable to accept job, sleeping and retrying": throttled,
		"Rate limit exceeded, please retry momentarily":                 throttled,
		"Slurm backup controller in standby mode":                       transient,
		"Unable to contact slurm controller (connect failure)":          unknown,
		"Socket timed out on send/recv operation":                       unknown,
		"Zero Bytes were transmitted or received":                       unknown,
		"Munge encode failed: Failed to connect to \"/run/munge/munge.socket.2\" " +
			"Protocol authentication error": transient,
	} {
		script := fmt.Sprintf("echo \"sbatch: error: QOSMaxGRESPerUser\" >&2\necho '%s' >&2\nexit 1",
			strings.ReplaceAll(said, "'", `'\''`))
		cluster := replayCluster(t, map[string]string{"squeue": "exit 0", "sinfo": props["sinfo"], "sbatch": script},
			func(c *slurm.Config) { c.Offers[1].Partition = "gpu" })
		_, err := cluster.Create(t.Context(), "token-1", testSpec("a100-2", "nod_1"))
		var got *provisioners.Error
		require.ErrorAs(t, err, &got, said)
		require.Equal(t, want.Kind, got.Kind, said)
		require.Equal(t, want.Scope, got.Scope, said)
		require.Equal(t, want.Kind == provisioners.KindThrottled, got.RetryAfter > 0, said)
	}
}

// An answer that makes no sense is no success, and not being asked is no doubt.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	create := func(scripts map[string]string) error {
		all := map[string]string{"squeue": "exit 0", "sinfo": props["sinfo"], "sbatch": "echo 12"}
		for name, script := range scripts {
			all[name] = script
		}
		cluster := replayCluster(t, all, func(c *slurm.Config) { c.Offers[1].Partition = "gpu" })
		_, err := cluster.Create(t.Context(), "token-1", testSpec("a100-2", "nod_1"))
		require.Error(t, err)
		return err
	}
	require.Equal(t, provisioners.KindUnknown,
		provisioners.KindOf(create(map[string]string{"sbatch": "echo Submitted"})))
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(create(nil)), "squeue does not show it")
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(create(map[string]string{"squeue": "exit 1"})))
	require.Equal(t, provisioners.KindTransient,
		provisioners.KindOf(create(map[string]string{"sinfo": "printf 'n1\\037gpu'"})))
	require.Equal(t, provisioners.KindUnknown,
		provisioners.KindOf(create(map[string]string{"squeue": "printf 'x\\037y'"})), "a list that is cut")

	none, err := slurm.New(slurm.Config{BinDir: t.TempDir(), Offers: testConfig("/").Offers}, clock.NewManual(start))
	require.NoError(t, err)
	_, err = none.Offers(t.Context())
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
	require.ErrorContains(t, err, "bin_dir")
}

// A command that hangs is killed with all that it started, one that talks without
// end is stopped, and a caller that leaves is not waited for.
func TestCommandsAreBounded(t *testing.T) {
	t.Parallel()
	quick := func(c *slurm.Config) { c.Timeout = 8 * time.Second; c.Offers[1].Partition = "gpu" }
	child := filepath.Join(t.TempDir(), "child")
	hangs := "sleep 600 & echo $! >" + child + "; wait"
	cluster := replayCluster(t, map[string]string{"squeue": "exit 0", "sinfo": props["sinfo"], "sbatch": hangs}, quick)
	_, err := cluster.Create(t.Context(), "token-1", testSpec("a100-2", "nod_1"))
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	text, err := os.ReadFile(child)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ")
	}, time.Minute, 10*time.Millisecond, "what the command started lives on")

	_, err = replayCluster(t, map[string]string{"squeue": hangs}, quick).List(t.Context(), "dep")
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
	_, err = replayCluster(t, map[string]string{"squeue": "yes"}).List(t.Context(), "dep")
	require.ErrorContains(t, err, "longer than 16 MiB")

	ctx, cancel := context.WithCancel(t.Context())
	began := filepath.Join(t.TempDir(), "began")
	leaves := replayCluster(t, map[string]string{"squeue": "touch " + began + "; sleep 600"})
	answered := make(chan error)
	go func() {
		_, err := leaves.Get(ctx, "12-0123456789abcdef")
		answered <- err
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(began); return err == nil }, time.Minute,
		10*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-answered, context.Canceled)
}

// Slurm's commands, and so the job, get nothing of our environment but where to
// look. A shell at the other end gets every argument as one word.
func TestCommandLines(t *testing.T) {
	t.Setenv("FOREWARM_PEPPER", "secret")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"squeue": "exit 0", "sinfo": props["sinfo"],
		"sbatch": `env >"` + dir + `/env"; printf '%s\n' "$@" >"` + dir + `/args"; exit 1`,
		"ssh":    `shift; exec sh -c "$*"`, // as sshd does it
	} {
		require.NoError(t, forklock.WriteProgram(filepath.Join(dir, name), "#!/bin/sh\n"+text+"\n"))
	}
	for _, prefix := range [][]string{nil, {filepath.Join(dir, "ssh"), "login1"}} {
		c := testConfig(folder(dir))
		c.CommandPrefix, c.SlurmConf, c.ExtraArgs = prefix, "/etc/slurm/a b.conf", []string{"--constraint=a&b|c"}
		cluster, err := slurm.New(c, clock.NewManual(start))
		require.NoError(t, err)
		token := "it's; $(touch /tmp/x) `id` \"quoted\"\n"
		_, err = cluster.Create(t.Context(), token, testSpec("a100-2", "nod_1"))
		require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err), "%v", err)
		environment, err := os.ReadFile(filepath.Join(dir, "env"))
		require.NoError(t, err)
		require.NotContains(t, string(environment), "secret")
		require.Contains(t, string(environment), "SLURM_CONF=/etc/slurm/a b.conf\n")
		args, err := os.ReadFile(filepath.Join(dir, "args"))
		require.NoError(t, err)
		require.Contains(t, string(args),
			"\n--comment=forewarm:n=nod_1&o=dep&p=slurm&"+
				"t=it%27s%3B+%24%28touch+%2Ftmp%2Fx%29+%60id%60+%22quoted%22%0A&y=a100-2\n")
		require.Contains(t, string(args), "\n--constraint=a&b|c\n")
	}
}

// Two processes that know nothing of each other make one machine of a token,
// over and over.
func TestRaceOfTwoProcesses(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(8)})
	for round := range 5 {
		token := fmt.Sprint("token-", round)
		ids, errs := make([]string, 3), make([]error, 3)
		var group sync.WaitGroup
		for i := range ids {
			other := l
			other.openCluster(t, func(c *slurm.Config) { c.StateFile = "" })
			group.Go(func() {
				made, err := other.Create(t.Context(), token, testSpec("a100-2", "nod_1"))
				ids[i], errs[i] = made.ID, err
			})
		}
		group.Wait()
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, []string{ids[0], ids[0], ids[0]}, ids)
		require.Equal(t, 1, l.countHolding(t, token))
	}
}

// countHolding counts the jobs of a token that hold something.
func (l lab) countHolding(t *testing.T, token string) int {
	t.Helper()
	count := 0
	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			if strings.Contains(j.Comment, "&t="+token+"&") && !j.isOver() {
				count++
			}
		}
	})
	return count
}

// A submission that arrives after it was given up is ended by the next look, and
// nobody hears of it.
func TestLateSubmission(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(2)})
	made, err := l.Create(t.Context(), "token-1", testSpec("a100-4", "nod_1"))
	require.NoError(t, err)
	l.mustUpdate(t, func(w *world) {
		late := *w.Jobs[0]
		w.Next++
		late.ID, late.State, late.Node = w.Next, "PENDING", ""
		w.Jobs = append(w.Jobs, &late)
	})
	require.Equal(t, 2, l.countHolding(t, "token-1"))
	list, err := l.List(t.Context(), "dep")
	require.NoError(t, err)
	require.Len(t, list.Instances, 1)
	require.Equal(t, made.ID, list.Instances[0].ID)
	require.Equal(t, 1, l.countHolding(t, "token-1"))
}
