package slurm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

// stage is where a placeholder plays: a folder with Slurm's commands, the
// driver's, and a clock that only sleeping moves.
type stage struct {
	t   *testing.T
	dir string
}

var props = map[string]string{
	"sbatch": `cat >"$dir/script"; echo 12`,
	"sinfo":  `printf 'n1\037gpu\037idle\037gpu:a100:4\037gpu:a100:0\0370/4/0/4\037none\037\n'`,
	"date":   `cat "$dir/now"`,
	// sleep moves the clock, and plays what the test has planned for that moment.
	"sleep": `echo $(($(cat "$dir/now") + $1)) >"$dir/now"; echo "slept $1" >>"$dir/story"
[ "$(grep -c slept "$dir/story")" -lt 40 ] || kill -KILL $PPID
[ ! -f "$dir/then" ] || . "$dir/then"`,
	"squeue": `case "$*" in
*--me*) exit 0 ;;
*--steps*) cat "$dir/steps" ;;
*) cat "$dir/name" ;;
esac`,
	"scontrol":   `shift; echo "$*" >>"$dir/story"; [ ! -f "$dir/deaf" ]`,
	"nvidia-smi": `cat "$dir/gpus"`,
	"timeout":    `shift 3; exec "$@"`,
}

// newStage submits a machine of two GPUs and keeps the script.
func newStage(t *testing.T, spoil ...func(*slurm.Config)) stage {
	t.Helper()
	s := stage{t, t.TempDir()}
	for name, text := range props {
		program := "#!/bin/sh\ndir='" + s.dir + "'\n" + text + "\n"
		require.NoError(t, forklock.WriteProgram(filepath.Join(s.dir, name), program))
	}
	s.writeFile("now", "1000000")
	s.writeFile("name", "forewarm-0123456789abcdef")
	s.writeFile("steps", "12.batch\n12.extern\n")
	s.writeFile("gpus", "0, GPU-a, 81559, 0, NVIDIA A100\n1, GPU-b, 81559, [N/A], NVIDIA A100\n")
	c := testConfig(folder(s.dir))
	for _, spoil := range spoil {
		spoil(&c)
	}
	cluster, err := slurm.New(c, clock.NewManual(start))
	require.NoError(t, err)
	_, err = cluster.Create(t.Context(), "it's a token",
		provisioners.Spec{Type: "a100-2", Owner: "dep & 'co'", NodeID: "nod_1"})
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err), "the job is nowhere: %v", err)
	return s
}

func (s stage) writeFile(name, text string) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

// runPlaceholder runs the placeholder and returns what it did, and whether it ended well.
func (s stage) runPlaceholder(gpus string) (story []string, fine bool) {
	s.t.Helper()
	run := exec.CommandContext(s.t.Context(), "sh", filepath.Join(s.dir, "script"))
	run.Env = []string{"PATH=" + os.Getenv("PATH"), "SLURM_JOB_ID=12", "SLURM_JOB_GPUS=" + gpus}
	run.WaitDelay = time.Second
	said, err := run.CombinedOutput()
	text, readErr := os.ReadFile(filepath.Join(s.dir, "story"))
	if readErr != nil {
		return nil, err == nil
	}
	s.t.Logf("%s", said)
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err == nil
}

const published = "JobId=12 Comment=forewarm:n=nod_1&o=dep+%26+%27co%27&p=slurm&t=it%27s+a+token&y=a100-2"

// It reports its GPUs, sleeps until its time, reads that it was renewed, sleeps
// on, waits for the step that runs, and goes.
func TestPlaceholderLives(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.writeFile("name", "forewarm-0123456789abcdef-x1000100")
	s.writeFile("then", `case $(cat "$dir/now") in
1000100) echo forewarm-0123456789abcdef-x1000300 >"$dir/name"; echo 12.0 >>"$dir/steps" ;;
1000330) echo 12.batch >"$dir/steps" ;;
esac`)
	story, fine := s.runPlaceholder("0,1")
	require.True(t, fine)
	require.Equal(t, []string{
		published + "&g=0:a:81559:0,1:b:81559:0&m=NVIDIA+A100", "slept 100", "slept 200", "slept 30",
	}, story)
}

// Where the driver shows GPUs of others too, its own are picked.
func TestPlaceholderPicksItsGPUs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.writeFile("gpus", "0, GPU-a, 1, 0, A\n1, GPU-b, 1, 2, B \"x\"&g=\n2, GPU-c, 1, 0, A\n10, GPU-d, 1, 5, C\n")
	s.writeFile("then", `echo forewarm-0123456789abcdef-x1 >"$dir/name"`)
	story, fine := s.runPlaceholder("1,10")
	require.True(t, fine)
	require.Equal(t, published+"&g=1:b:1:2,10:d:1:5&m=mixed", story[0])
}

// A probe that does not pass, for whatever reason, ends the placeholder as
// failed: its node is given back.
func TestPlaceholderGivesUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ gpus, own string }{
		"too few":      {"0, GPU-a, 81559, 0, NVIDIA A100\n", "0,1"},
		"none":         {"", "0,1"},
		"words":        {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver\n", "0,1"},
		"no UUID":      {"0, a, 1, 0, A\n1, b, 1, 0, A\n", "0,1"},
		"not its own":  {"0, GPU-a, 1, 0, A\n1, GPU-b, 1, 0, A\n2, GPU-c, 1, 0, A\n", "3,4"},
		"own unknown":  {"0, GPU-a, 1, 0, A\n1, GPU-b, 1, 0, A\n2, GPU-c, 1, 0, A\n", ""},
		"own's prefix": {"1, GPU-a, 1, 0, A\n2, GPU-b, 1, 0, A\n3, GPU-c, 1, 0, A\n", "11,22"},
	} {
		s := newStage(t, func(c *slurm.Config) { c.ProbeTimeout = 10 * time.Second })
		s.writeFile("gpus", test.gpus)
		story, fine := s.runPlaceholder(test.own)
		require.False(t, fine, name)
		require.Equal(t, []string{"slept 2", "slept 2", "slept 2", "slept 2", "slept 2"}, story, name)
	}
}

// A report that did not arrive is sent again.
func TestPlaceholderRepeatsItsReport(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.writeFile("deaf", "")
	s.writeFile("then",
		`rm -f "$dir/deaf"; [ "$(cat "$dir/now")" -lt 1000004 ] || echo forewarm-0123456789abcdef-x1 >"$dir/name"`)
	story, fine := s.runPlaceholder("0,1")
	require.True(t, fine)
	require.Len(t, story, 4) // report, sleep, report, the long sleep
	require.Equal(t, story[0], story[2])
}

// One that starts after its time holds nothing; one that cannot read its name
// never concludes anything from that.
func TestPlaceholderAtTheEnds(t *testing.T) {
	t.Parallel()
	late := newStage(t)
	late.writeFile("name", "forewarm-0123456789abcdef-x999999")
	story, fine := late.runPlaceholder("0,1")
	require.True(t, fine)
	require.Empty(t, story)

	lost := newStage(t)
	lost.writeFile("name", "slurm_load_jobs error: something\n")
	lost.writeFile("then",
		`[ "$(cat "$dir/now")" -lt 1000600 ] || echo forewarm-0123456789abcdef-x1000700 >"$dir/name"`)
	story, fine = lost.runPlaceholder("0,1")
	require.True(t, fine)
	require.Equal(t, "slept 30", story[1])
	require.Equal(t, "slept 100", story[len(story)-1])
}

// Only where it is allowed, and only without the program, a node serves unprobed.
func TestPlaceholderUnprobed(t *testing.T) {
	t.Parallel()
	absent := func(allow bool) func(*slurm.Config) {
		return func(c *slurm.Config) {
			c.Probe, c.AllowUnprobed, c.ProbeTimeout = []string{"no-such-program"}, allow, 2*time.Second
		}
	}
	s := newStage(t, absent(true))
	s.writeFile("then", `echo forewarm-0123456789abcdef-x1 >"$dir/name"`)
	story, fine := s.runPlaceholder("2,3")
	require.True(t, fine)
	require.Equal(t, published+"&u=2,3", story[0])
	_, fine = newStage(t, absent(true)).runPlaceholder("2")
	require.False(t, fine, "another number of GPUs than asked for")
	_, fine = newStage(t, absent(false)).runPlaceholder("2,3")
	require.False(t, fine, "not allowed")
}
