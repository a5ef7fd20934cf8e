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
	"github.com/forewarm/forewarm/provisioners/gcp/guest"
)

// machine is a folder with commands that stand in for the real ones. Time is a
// number in a file, which each sleep moves.
type machine struct {
	t      *testing.T
	folder string
}

const born = 1_000_000

// The commands of the machine. curl answers from files named after the path, and
// writes what is put beside them; preempted becomes TRUE, and programs leave the
// GPUs, at times that files say.
var commands = map[string]string{
	"curl": `#!/bin/sh
for last; do :; done
path=${last#http://metadata.google.internal/computeMetadata/v1/instance/}
case "$*" in *'Metadata-Flavor: Google'*) ;; *) exit 22 ;; esac
case "$*" in
*PUT*)
	mkdir -p "$HOME/written"
	cat >"$HOME/written/${path##*/}"
	echo "${path%/*}" >>"$HOME/namespaces"
	exit ;;
esac
if [ "$path" = preempted ]; then
	at=$(cat "$HOME/preempted-at" 2>/dev/null || echo 9999999999)
	[ "$(cat "$HOME/now")" -ge "$at" ] && echo TRUE || echo FALSE
	exit
fi
cat "$HOME/metadata/${path#attributes/}" 2>/dev/null || exit 22`,
	"nvidia-smi": `#!/bin/sh
[ -f "$HOME/driver" ] || exit 9
case "$*" in
*--query-gpu=*) cat "$HOME/driver" ;;
*) [ "$(cat "$HOME/now")" -lt "$(cat "$HOME/busy-until" 2>/dev/null || echo 0)" ] && echo 4711 ;;
esac
true`,
	"timeout": "#!/bin/sh\nshift\nexec \"$@\"",
	"date":    "#!/bin/sh\ncat \"$HOME/now\"",
	"sleep": "#!/bin/sh\necho $(($(cat \"$HOME/now\") + $1)) >\"$HOME/now.new\" && mv \"$HOME/now.new\" " +
		"\"$HOME/now\"",
	"poweroff": "#!/bin/sh\ncat \"$HOME/now\" >\"$HOME/off\"",
}

func newMachine(t *testing.T) machine {
	m := machine{t: t, folder: t.TempDir()}
	for name, text := range commands {
		m.writeFile(filepath.Join("bin", name), text)
	}
	m.writeFile("startup.sh", guest.Script)
	m.writeFile("now", fmt.Sprint(born))
	return m
}

func (m machine) writeFile(name, text string) {
	path := filepath.Join(m.folder, name)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(m.t, forklock.WriteProgram(path, text))
}

func (m machine) readFile(name string) string {
	text, err := os.ReadFile(filepath.Join(m.folder, name))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(m.t, err)
	return strings.TrimSpace(string(text))
}

// bootMachine runs the script to the machine's end, which every test gives it.
func (m machine) bootMachine(expires int) {
	m.writeFile("metadata/"+guest.ExpiresKey, fmt.Sprint(expires))
	shell := exec.CommandContext(m.t.Context(), "sh", "-c", `. "$0"; wait`, filepath.Join(m.folder, "startup.sh"))
	shell.Env = []string{"HOME=" + m.folder, "TMPDIR=" + m.folder,
		"PATH=" + filepath.Join(m.folder, "bin") + ":/usr/bin:/bin"}
	output, err := shell.CombinedOutput()
	require.NoError(m.t, err, "%s", output)
}

func (m machine) readReport() (guest.Report, error) {
	values := map[string]string{}
	for _, key := range []string{"gpus", "notice", "error"} {
		if text := m.readFile("written/" + key); text != "" {
			values[key] = text
		}
	}
	return guest.Read(values)
}

const driver = "0, GPU-aaaa, 81559, 0, NVIDIA H100 80GB HBM3\n1, GPU-bbbb, 81559, [N/A], NVIDIA \"H100\", PCIe\n"

func TestMachineReportsAndEnds(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.writeFile("driver", driver)
	m.bootMachine(born + 150)
	report, err := m.readReport()
	require.NoError(t, err)
	require.Equal(t, guest.Report{GPUs: []guest.GPU{
		{Index: 0, UUID: "GPU-aaaa", Name: "NVIDIA H100 80GB HBM3", MemoryMiB: 81_559},
		{Index: 1, UUID: "GPU-bbbb", Name: "NVIDIA H100, PCIe", MemoryMiB: 81_559},
	}}, report)
	require.Equal(t, fmt.Sprint(born+150), m.readFile("off"))
	for _, namespace := range strings.Fields(m.readFile("namespaces")) {
		require.Equal(t, "guest-attributes/"+guest.Namespace, namespace)
	}
}

func TestWorkIsNotCutShort(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.writeFile("driver", driver)
	m.writeFile("busy-until", fmt.Sprint(born+200))
	m.bootMachine(born + 100)
	require.Equal(t, fmt.Sprint(born+200), m.readFile("off"))
}

func TestMachineWithoutADriverEndsToo(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.bootMachine(born + 100)
	require.Equal(t, fmt.Sprint(born+100), m.readFile("off"))
	require.Empty(t, m.readFile("written/gpus"), "no driver, no report")
}

func TestSpotMachineSaysWhenItIsTakenBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.writeFile("driver", driver)
	m.writeFile("preempted-at", fmt.Sprint(born+60))
	m.bootMachine(born + 150)
	report, err := m.readReport()
	require.NoError(t, err)
	require.Equal(t, time.Unix(born+60, 0).UTC(), report.Notice)
}

// The machine is ready when the operator's script, in whatever language, is
// done: it may install the driver.
func TestOperatorsScriptComesFirst(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.writeFile("metadata/"+guest.UserKey, "#!/bin/bash\n[[ -f $HOME/written/gpus ]] && exit 1\nprintf '"+
		strings.ReplaceAll(driver, "\n", "\\n")+"' >$HOME/driver\n")
	m.bootMachine(born + 150)
	report, err := m.readReport()
	require.NoError(t, err)
	require.Len(t, report.GPUs, 2)
}

func TestOperatorsScriptThatFails(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.writeFile("driver", driver)
	m.writeFile("metadata/"+guest.UserKey, "exit 7\n")
	m.bootMachine(born + 150)
	report, err := m.readReport()
	require.NoError(t, err)
	require.Equal(t, guest.Report{Error: "the start-up script ended with 7"}, report)
}

// The daemon may need what the operator's script installs, and a script that failed has made
// no machine that anybody could use.
func TestTheDaemonComesAfterTheOperatorsScript(t *testing.T) {
	t.Parallel()
	for ended, starts := range map[string]bool{"0": true, "7": false} {
		m := newMachine(t)
		m.writeFile("metadata/"+guest.UserKey, "#!/bin/sh\necho operator >>$HOME/order\nexit "+ended+"\n")
		m.writeFile("metadata/"+guest.DaemonKey, "#!/bin/sh\necho daemon >>$HOME/order\n")
		m.bootMachine(born + 100)
		require.Equal(t, starts, m.readFile("order") == "operator\ndaemon")
	}
	m := newMachine(t) // whose daemon cannot be installed
	m.writeFile("driver", driver)
	m.writeFile("metadata/"+guest.DaemonKey, "exit 3\n")
	m.bootMachine(born + 100)
	report, err := m.readReport()
	require.NoError(t, err)
	require.Empty(t, report.Error, "the GPUs can be used all the same")
}

func TestReportsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]string{
		"no JSON":    {"gpus": "GPU 0"},
		"no GPU":     {"gpus": "[]"},
		"no UUID":    {"gpus": `[{"index":0}]`},
		"same UUID":  {"gpus": `[{"index":0,"uuid":"a"},{"index":1,"uuid":"a"}]`},
		"same index": {"gpus": `[{"index":0,"uuid":"a"},{"index":0,"uuid":"b"}]`},
		"no time":    {"notice": "soon"},
		"too many":   {"gpus": "[" + strings.Repeat(`{"index":0,"uuid":"a"},`, 64) + `{}]`},
	} {
		_, err := guest.Read(values)
		require.Error(t, err, name)
	}
	report, err := guest.Read(map[string]string{"newer": "x"})
	require.NoError(t, err)
	require.Equal(t, guest.Report{}, report)
}
