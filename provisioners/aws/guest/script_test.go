package guest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners/aws/guest"
)

// The programs that the script calls, played by files in the machine's folder.
var programs = map[string]string{
	"curl": `#!/bin/sh
case "$*" in
*api/token*) [ -e "$HERE/no-imds" ] && exit 7; echo session ;;
*tags/instance/forewarm:expires-at*"X-aws-ec2-metadata-token: session"* | *"X-aws-ec2-metadata-token: session"*tags/instance/forewarm:expires-at*)
	while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
	if [ -e "$HERE/tag" ]; then cat "$HERE/tag" >"$out"; printf 200; else echo '<html>404' >"$out"; printf 404; fi ;;
*) exit 22 ;;
esac`,
	"nvidia-smi": `#!/bin/sh
[ -e "$HERE/no-driver" ] && exit 9
case "$*" in
*query-gpu*) cat "$HERE/gpus"; [ ! -e "$HERE/lost" ] || exit 15 ;;
*query-compute-apps*) cat "$HERE/apps" ;;
esac`,
	"poweroff": `#!/bin/sh
echo off >>"$HERE/poweroff"`,
	"date": `#!/bin/sh
case "$*" in
+%s) cat "$HERE/seconds" ;;
"-u +%Y%m%d%H%M%S") cat "$HERE/digits" ;;
*) exit 1 ;;
esac`,
}

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

const twoGPUs = "GPU-a, 0, NVIDIA H100 80GB HBM3, 81559, 0\nGPU-b, 1, NVIDIA \"H100\\ 80GB, 81559, [N/A]\n"

// machine is one on which the script runs.
type machine struct {
	t    *testing.T
	here string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{t: t, here: t.TempDir()}
	bin := filepath.Join(m.here, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	for name, text := range programs {
		require.NoError(t, forklock.WriteProgram(filepath.Join(bin, name), text))
	}
	m.write("gpus", twoGPUs)
	m.write("apps", "")
	return m
}

func (m machine) write(name, text string) {
	require.NoError(m.t, os.WriteFile(filepath.Join(m.here, name), []byte(text), 0o600))
}

func (m machine) remove(name string) { require.NoError(m.t, os.Remove(filepath.Join(m.here, name))) }

func (m machine) read(name string) string {
	data, err := os.ReadFile(filepath.Join(m.here, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// run runs the script as the timer does, at that time after its first run.
func (m machine) run(after time.Duration) {
	m.t.Helper()
	now := start.Add(after)
	m.write("seconds", fmt.Sprint(now.Unix()))
	m.write("digits", now.Format("20060102150405"))
	cmd := exec.CommandContext(m.t.Context(), "sh", "guest.sh")
	cmd.Env = []string{
		"PATH=" + filepath.Join(m.here, "bin") + ":/usr/bin:/bin", "HERE=" + m.here,
		"FOREWARM_STATE=" + filepath.Join(m.here, "state"), "FOREWARM_CONSOLE=" + filepath.Join(m.here, "console"),
		"FOREWARM_UNCLAIMED_S=3600",
	}
	output, _ := cmd.CombinedOutput() // of its last command, which may be a test
	require.Empty(m.t, string(output))
}

func (m machine) off() bool { return m.read("poweroff") != "" }

func TestScriptsAreShell(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"guest.sh", "install.sh"} {
		output, err := exec.CommandContext(t.Context(), "sh", "-n", name).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, output)
	}
}

func TestScriptReports(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("tag", "never")
	m.run(0)
	report, found := guest.Find(m.read("console"))
	require.True(t, found, m.read("console"))
	none := uint64(0)
	require.Equal(t, []guest.GPU{
		{UUID: "GPU-a", Index: 0, Name: "NVIDIA H100 80GB HBM3", MemoryMiB: 81_559, ECC: &none},
		{UUID: "GPU-b", Index: 1, Name: "NVIDIA H100 80GB", MemoryMiB: 81_559},
	}, report.GPUs)

	m.write("gpus", "GPU-a, 0, NVIDIA H100 80GB HBM3, 81559, 3\nUnable to determine the device handle for GPU1: GPU "+
		"is lost.\n")
	m.write("lost", "")
	m.run(time.Minute)
	report, found = guest.Find(m.read("console"))
	require.True(t, found)
	require.Len(t, report.GPUs, 1)
	require.Equal(t, uint64(3), *report.GPUs[0].ECC)

	m.write("no-driver", "")
	before := m.read("console")
	m.run(2 * time.Minute)
	require.Equal(t, before, m.read("console"), "without a driver there is nothing to say")
	require.False(t, m.off())
}

// The console forgets, so the line comes again; but not every minute for ever.
func TestScriptRepeatsItsReport(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("tag", "never")
	for i := range 30 {
		m.run(time.Duration(i) * time.Minute)
	}
	require.Equal(t, 12, strings.Count(m.read("console"), "forewarm-gpus "), "10 at first, then each tenth")
}

func TestScriptEndsAnIdleMachineInTime(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("tag", guest.Expiry(start.Add(time.Hour)))
	m.run(0)
	m.run(59 * time.Minute)
	require.False(t, m.off())
	m.write("tag", guest.Expiry(start.Add(2*time.Hour))) // renewed
	m.run(61 * time.Minute)
	require.False(t, m.off())
	m.write("apps", "4711\n")
	m.run(3 * time.Hour)
	require.False(t, m.off(), "something runs on its GPUs")
	m.write("apps", "")
	m.run(4 * time.Hour)
	require.True(t, m.off())
	require.Contains(t, m.read("console"), "the time of this machine is over")
}

func TestScriptKeepsWhatItKnows(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(machine){
		"tag gone":    func(m machine) { m.remove("tag") },
		"no metadata": func(m machine) { m.write("no-imds", "") },
		"nonsense":    func(m machine) { m.write("tag", "tomorrow; poweroff") },
		"empty":       func(m machine) { m.write("tag", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write("tag", guest.Expiry(start.Add(2*time.Hour)))
			m.run(0)
			spoil(m)
			m.run(119 * time.Minute)
			require.False(t, m.off())
			m.run(2 * time.Hour)
			require.True(t, m.off())
		})
	}
}

func TestScriptAndAMachineThatNobodyClaimed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.run(0)
	m.run(59 * time.Minute)
	require.False(t, m.off())
	m.write("no-imds", "")
	m.run(2 * time.Hour)
	require.False(t, m.off(), "that a tag is missing must be said, not guessed")
	m.remove("no-imds")
	m.run(3 * time.Hour)
	require.True(t, m.off())

	m = newMachine(t)
	m.write("tag", guest.Never)
	m.run(0)
	m.run(10_000 * time.Hour)
	require.False(t, m.off())
}

// A driver that answers nothing may hide a job, but not for ever.
func TestScriptAndADriverThatIsSilent(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("tag", guest.Expiry(start))
	m.write("no-driver", "")
	for i := range 59 {
		m.run(time.Duration(i) * time.Minute)
	}
	require.False(t, m.off())
	m.run(time.Hour)
	require.True(t, m.off())
}
