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
*tags/instance/forewarm:expires-at*"X-aws-ec2-metadata-token: session"* | \
*"X-aws-ec2-metadata-token: session"*tags/instance/forewarm:expires-at*)
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
	m.writeFile("gpus", twoGPUs)
	m.writeFile("apps", "")
	return m
}

func (m machine) writeFile(name, text string) {
	require.NoError(m.t, os.WriteFile(filepath.Join(m.here, name), []byte(text), 0o600))
}

func (m machine) removeFile(name string) {
	require.NoError(m.t, os.Remove(filepath.Join(m.here, name)))
}

func (m machine) readFile(name string) string {
	data, err := os.ReadFile(filepath.Join(m.here, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// runScript runs the script as the timer does, at that time after its first run.
func (m machine) runScript(after time.Duration) {
	m.t.Helper()
	now := start.Add(after)
	m.writeFile("seconds", fmt.Sprint(now.Unix()))
	m.writeFile("digits", now.Format("20060102150405"))
	cmd := exec.CommandContext(m.t.Context(), "sh", "guest.sh")
	cmd.Env = []string{
		"PATH=" + filepath.Join(m.here, "bin") + ":/usr/bin:/bin", "HERE=" + m.here,
		"FOREWARM_STATE=" + filepath.Join(m.here, "state"), "FOREWARM_CONSOLE=" + filepath.Join(m.here, "console"),
		"FOREWARM_UNCLAIMED_S=3600",
	}
	output, _ := cmd.CombinedOutput() // of its last command, which may be a test
	require.Empty(m.t, string(output))
}

func (m machine) isOff() bool { return m.readFile("poweroff") != "" }

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
	m.writeFile("tag", "never")
	m.runScript(0)
	report, found := guest.Find(m.readFile("console"))
	require.True(t, found, m.readFile("console"))
	none := uint64(0)
	require.Equal(t, []guest.GPU{
		{UUID: "GPU-a", Index: 0, Name: "NVIDIA H100 80GB HBM3", MemoryMiB: 81_559, ECC: &none},
		{UUID: "GPU-b", Index: 1, Name: "NVIDIA H100 80GB", MemoryMiB: 81_559},
	}, report.GPUs)

	m.writeFile("gpus",
		"GPU-a, 0, NVIDIA H100 80GB HBM3, 81559, 3\nUnable to determine the device handle for GPU1: GPU "+
			"is lost.\n")
	m.writeFile("lost", "")
	m.runScript(time.Minute)
	report, found = guest.Find(m.readFile("console"))
	require.True(t, found)
	require.Len(t, report.GPUs, 1)
	require.Equal(t, uint64(3), *report.GPUs[0].ECC)

	m.writeFile("no-driver", "")
	before := m.readFile("console")
	m.runScript(2 * time.Minute)
	require.Equal(t, before, m.readFile("console"), "without a driver there is nothing to say")
	require.False(t, m.isOff())
}

// The console forgets, so the line comes again; but not every minute for ever.
func TestScriptRepeatsItsReport(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.writeFile("tag", "never")
	for i := range 30 {
		m.runScript(time.Duration(i) * time.Minute)
	}
	require.Equal(t, 12, strings.Count(m.readFile("console"), "forewarm-gpus "), "10 at first, then each tenth")
}

func TestScriptEndsAnIdleMachineInTime(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.writeFile("tag", guest.Expiry(start.Add(time.Hour)))
	m.runScript(0)
	m.runScript(59 * time.Minute)
	require.False(t, m.isOff())
	m.writeFile("tag", guest.Expiry(start.Add(2*time.Hour))) // renewed
	m.runScript(61 * time.Minute)
	require.False(t, m.isOff())
	m.writeFile("apps", "4711\n")
	m.runScript(3 * time.Hour)
	require.False(t, m.isOff(), "something runs on its GPUs")
	m.writeFile("apps", "")
	m.runScript(4 * time.Hour)
	require.True(t, m.isOff())
	require.Contains(t, m.readFile("console"), "the time of this machine is over")
}

func TestScriptKeepsWhatItKnows(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(machine){
		"tag gone":    func(m machine) { m.removeFile("tag") },
		"no metadata": func(m machine) { m.writeFile("no-imds", "") },
		"nonsense":    func(m machine) { m.writeFile("tag", "tomorrow; poweroff") },
		"empty":       func(m machine) { m.writeFile("tag", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.writeFile("tag", guest.Expiry(start.Add(2*time.Hour)))
			m.runScript(0)
			spoil(m)
			m.runScript(119 * time.Minute)
			require.False(t, m.isOff())
			m.runScript(2 * time.Hour)
			require.True(t, m.isOff())
		})
	}
}

func TestScriptAndAMachineThatNobodyClaimed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runScript(0)
	m.runScript(59 * time.Minute)
	require.False(t, m.isOff())
	m.writeFile("no-imds", "")
	m.runScript(2 * time.Hour)
	require.False(t, m.isOff(), "that a tag is missing must be said, not guessed")
	m.removeFile("no-imds")
	m.runScript(3 * time.Hour)
	require.True(t, m.isOff())

	m = newMachine(t)
	m.writeFile("tag", guest.Never)
	m.runScript(0)
	m.runScript(10_000 * time.Hour)
	require.False(t, m.isOff())
}

// A driver that answers nothing may hide a job, but not for ever.
func TestScriptAndADriverThatIsSilent(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.writeFile("tag", guest.Expiry(start))
	m.writeFile("no-driver", "")
	for i := range 59 {
		m.runScript(time.Duration(i) * time.Minute)
	}
	require.False(t, m.isOff())
	m.runScript(time.Hour)
	require.True(t, m.isOff())
}
