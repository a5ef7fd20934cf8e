package bootscript_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/bootscript"
)

// machine is a folder that stands for a machine's root. systemd is played by a program that
// writes down what it is told.
type machine struct {
	t    *testing.T
	root string
}

func newMachine(t *testing.T) machine {
	m := machine{t: t, root: t.TempDir()}
	for name, text := range map[string]string{
		"systemctl": "#!/bin/sh\necho \"$*\" >>\"$FOREWARM_ROOT/told\"\n",
		"uname":     "#!/bin/sh\ncat \"$FOREWARM_ROOT/uname\"\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(m.root, "bin"), 0o700))
		require.NoError(t, forklock.WriteProgram(filepath.Join(m.root, "bin", name), text))
	}
	require.NoError(t, os.WriteFile(filepath.Join(m.root, "uname"), []byte("x86_64\n"), 0o600))
	return m
}

// run runs a script on the machine, by standard input or from a file of its.
func (m machine) run(script, file string) (string, error) {
	cmd := exec.CommandContext(m.t.Context(), "sh", "-s")
	if file != "" {
		cmd = exec.CommandContext(m.t.Context(), "sh", filepath.Join(m.root, file)) //nolint:gosec // of the test
	}
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = []string{"FOREWARM_ROOT=" + m.root, "PATH=" + filepath.Join(m.root, "bin") + ":/usr/bin:/bin"}
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func (m machine) read(name string) (text string, mode os.FileMode) {
	data, err := os.ReadFile(filepath.Join(m.root, name))
	if os.IsNotExist(err) {
		return "", 0
	}
	require.NoError(m.t, err)
	info, err := os.Stat(filepath.Join(m.root, name))
	require.NoError(m.t, err)
	return string(data), info.Mode().Perm()
}

const fetcher, program = "usr/local/sbin/forewarm-node-fetch", "usr/local/bin/forewarm-node"

// handOut is a control plane that hands out a program, which can be exchanged.
func handOut(t *testing.T, text string) (d provisioners.Daemon, exchange func(string)) {
	var now atomic.Value
	now.Store(text)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		said, _ := now.Load().(string)
		if said == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(said))
	}))
	t.Cleanup(s.Close)
	sum := sha256.Sum256([]byte(text))
	program := provisioners.DaemonProgram{URL: s.URL + "/download/forewarm-node-linux-amd64",
		SHA256: hex.EncodeToString(sum[:])}
	return provisioners.Daemon{URL: "https://forewarm.example", Token: "it's secret",
		Programs: provisioners.DaemonPrograms{AMD64: program}}, func(text string) { now.Store(text) }
}

func TestAMachineDownloadsTheDaemon(t *testing.T) {
	t.Parallel()
	text, m := "#!/bin/sh\necho the daemon\n", newMachine(t)
	d, exchange := handOut(t, text)
	script, err := bootscript.Render(bootscript.Download, "nod_1", d)
	require.NoError(t, err)
	for range 2 { // a machine that is booted anew
		output, err := m.run(script, "")
		require.NoError(t, err, output)
	}
	token, mode := m.read("etc/forewarm/join-token")
	require.Equal(t, "it's secret", token)
	require.Equal(t, os.FileMode(0o600), mode, "the token is root's alone")
	config, mode := m.read("etc/forewarm/forewarm-node.yaml")
	require.Equal(t, "url: https://forewarm.example\nnode: nod_1\ntoken_file: /etc/forewarm/join-token\n", config)
	require.Equal(t, os.FileMode(0o600), mode)
	unit, mode := m.read("etc/systemd/system/forewarm-node.service")
	deployed, err := os.ReadFile("../../deploy/systemd/forewarm-node.service")
	require.NoError(t, err)
	require.Equal(t, string(deployed), strings.TrimSuffix(unit, "\n")+"\n", "cp deploy/systemd/forewarm-node.service .")
	require.Equal(t, os.FileMode(0o644), mode)
	dropIn, _ := m.read("etc/systemd/system/forewarm-node.service.d/fetch.conf")
	require.Contains(t, dropIn, "ExecStartPre=+/"+fetcher+"\n")
	told, _ := m.read("told")
	require.Equal(t, strings.Repeat("daemon-reload\nenable forewarm-node.service\n"+
		"start --no-block forewarm-node.service\n", 2), told)

	_, mode = m.read(program)
	require.Zero(t, mode, "systemd starts the download, so that nothing waits for it")
	output, err := m.run("", fetcher)
	require.NoError(t, err, output)
	got, mode := m.read(program)
	require.Equal(t, text, got)
	require.Equal(t, os.FileMode(0o755), mode)

	exchange("") // the control plane is away when the machine is booted anew
	output, err = m.run("", fetcher)
	require.NoError(t, err, output)

	newer := "#!/bin/sh\necho a newer daemon\n" // as forewarm-node upgrade leaves it
	require.NoError(t, forklock.WriteProgram(filepath.Join(m.root, program), newer))
	output, err = m.run("", fetcher)
	require.Error(t, err, output)
	sums := fmt.Sprintf("%x\n%x\n", sha256.Sum256([]byte(newer)), sha256.Sum256([]byte(text)))
	require.NoError(t, os.WriteFile(filepath.Join(m.root, program+".sums"), []byte(sums), 0o600))
	output, err = m.run("", fetcher)
	require.NoError(t, err, output)
	got, _ = m.read(program)
	require.Equal(t, newer, got)
}

func TestOnlyTheProgramThatWasPinnedIsTaken(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	d, exchange := handOut(t, "the daemon")
	script, err := bootscript.Render(bootscript.Download, "nod_1", d)
	require.NoError(t, err)
	output, err := m.run(script, "")
	require.NoError(t, err, output)
	for answer, says := range map[string]string{"another": "another program than when", "": "503"} {
		exchange(answer)
		output, err = m.run("", fetcher)
		require.Error(t, err)
		require.Contains(t, output, says)
	}
	_, mode := m.read(program)
	require.Zero(t, mode)
	left, err := filepath.Glob(filepath.Join(m.root, program+"*"))
	require.NoError(t, err)
	require.Empty(t, left, "no part stays")

	require.NoError(t, os.WriteFile(filepath.Join(m.root, "uname"), []byte("riscv64\n"), 0o600))
	output, err = m.run("", fetcher)
	require.Error(t, err)
	require.Contains(t, output, "has no forewarm-node for riscv64")
}

// A machine that does not run the build for glibc takes the static one, each by its own sum.
func TestAMachineTakesTheBuildThatRunsThere(t *testing.T) {
	t.Parallel()
	const runs, static = "#!/bin/sh\necho \"with NVML, asked for its $1\"\n", "#!/bin/sh\necho static\n"
	for name, c := range map[string]struct{ first, takes, says string }{
		"both run":            {runs, runs, "asked for its version"},
		"no loader is there":  {"#!/lib/no-loader\n", static, "taking the static one"},
		"its glibc is older":  {"#!/bin/sh\necho GLIBC_2.34 not found >&2\nexit 1\n", static, "GLIBC_2.34 not found"},
		"it is not a program": {"\x7fELF", static, "taking the static one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			d, exchange := handOut(t, c.first)
			other, exchangeStatic := handOut(t, static)
			d.Programs.StaticAMD64 = other.Programs.AMD64
			script, err := bootscript.Render(bootscript.Download, "nod_1", d)
			require.NoError(t, err)
			output, err := m.run(script, "")
			require.NoError(t, err, output)

			exchange("another")
			output, err = m.run("", fetcher)
			require.Error(t, err)
			require.Contains(t, output, "another program than when")
			exchange(c.first)
			if c.takes == static {
				exchangeStatic("another")
				output, err = m.run("", fetcher)
				require.Error(t, err)
				require.Contains(t, output, "another program than when")
			}
			left, err := filepath.Glob(filepath.Join(m.root, program+"*"))
			require.NoError(t, err)
			require.Empty(t, left, "what was not pinned is not taken")

			exchangeStatic(static)
			output, err = m.run("", fetcher)
			require.NoError(t, err, output)
			require.Contains(t, output, c.says)
			got, mode := m.read(program)
			require.Equal(t, c.takes, got)
			require.Equal(t, os.FileMode(0o755), mode)

			exchange("") // the control plane is away when the machine is booted anew
			exchangeStatic("")
			output, err = m.run("", fetcher)
			require.NoError(t, err, output)
		})
	}
}

// Where only one build is handed out, it is taken, whichever it is.
func TestAMachineTakesTheOnlyBuild(t *testing.T) {
	t.Parallel()
	for _, static := range []bool{false, true} {
		m := newMachine(t)
		d, _ := handOut(t, "the daemon")
		if static {
			d.Programs.StaticAMD64, d.Programs.AMD64 = d.Programs.AMD64, provisioners.DaemonProgram{}
		}
		script, err := bootscript.Render(bootscript.Download, "nod_1", d)
		require.NoError(t, err)
		output, err := m.run(script, "")
		require.NoError(t, err, output)
		output, err = m.run("", fetcher)
		require.NoError(t, err, output)
		got, _ := m.read(program)
		require.Equal(t, "the daemon", got)
	}
}

func TestAnImageThatHasTheDaemon(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	script, err := bootscript.Render(bootscript.Image, "nod_1", provisioners.Daemon{URL: "https://forewarm.example"})
	require.NoError(t, err)
	output, err := m.run(script, "")
	require.NoError(t, err, output)
	told, _ := m.read("told")
	require.Contains(t, told, "start --no-block forewarm-node.service\n")
	_, mode := m.read(fetcher)
	require.Zero(t, mode)
}

func TestWhatCannotBeRendered(t *testing.T) {
	t.Parallel()
	_, err := bootscript.Render(bootscript.Download, "nod_1", provisioners.Daemon{URL: "https://forewarm.example"})
	require.ErrorContains(t, err, "no program of the daemon to hand out")
	require.ErrorContains(t, bootscript.Source("yes").Check(), `"yes" is not none, download or image`)
	for _, s := range []bootscript.Source{"", bootscript.None, bootscript.Download, bootscript.Image} {
		require.NoError(t, s.Check())
		require.Equal(t, s == bootscript.Download || s == bootscript.Image, s.Starts())
	}
}
