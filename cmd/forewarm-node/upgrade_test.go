package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/node/buildtest"
)

// site is a machine whose daemon is a process, and its control plane, which hands out a program.
type site struct {
	*testing.T
	dir, url string
	offered  atomic.Pointer[[]byte]
}

func (s *site) offer(program []byte) { s.offered.Store(&program) }

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: t.TempDir()}
	p := &plane{came: make(chan struct{}, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/download/forewarm-node-") {
			_, _ = w.Write(*s.offered.Load())
			return
		}
		if r.URL.Path == "/nowhere" {
			http.NotFound(w, r)
			return
		}
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	s.write("join-token", "the token")
	s.write("config.yaml", fmt.Sprintf("url: %s\nnode: nod_1\nsimulate: 1\nsessions: false\ntoken_file: %s\n"+
		"state_dir: %s\n", s.url, s.at("join-token"), s.at("state")))
	s.write("restart", fmt.Sprintf("#!/bin/sh\ncd %s\nif [ -e pid ]; then kill $(cat pid); fi\n"+
		"./forewarm-node run --config config.yaml >>log 2>&1 & echo $! >pid\n", s.dir))
	t.Cleanup(func() {
		var pid int
		_, err := fmt.Sscan(string(s.read("pid")), &pid)
		require.NoError(t, err)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	})
	return s
}

func (s *site) at(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) {
	s.Helper()
	require.NoError(s, forklock.WriteProgram(s.at(name), text))
}

func (s *site) read(name string) []byte {
	s.Helper()
	text, err := os.ReadFile(s.at(name))
	require.NoError(s, err)
	return text
}

// upgrade has the program on the machine upgrade itself to what the control plane hands out.
func (s *site) upgrade(more ...string) (said string, err error) {
	s.Helper()
	sum := sha256.Sum256(*s.offered.Load())
	args := append([]string{"upgrade", "--sha256", hex.EncodeToString(sum[:]), "--config", s.at("config.yaml"),
		"--program", s.at("forewarm-node"), "--restart", s.at("restart")}, more...)
	out, err := exec.CommandContext(s.Context(), s.at("forewarm-node"), args...).CombinedOutput()
	return string(out), err
}

// begin has a daemon run, and returns its program.
func (s *site) begin() []byte {
	s.Helper()
	program, err := os.ReadFile(buildtest.Program("github.com/forewarm/forewarm/cmd/forewarm-node"))
	require.NoError(s, err)
	s.write("forewarm-node", string(program))
	require.NoError(s, exec.CommandContext(s.Context(), s.at("restart")).Run())
	return program
}

// another is another build of a program.
func another(program []byte) []byte { return append(slices.Clone(program), "another build"...) }

// A running daemon is replaced by another build of it, which goes on with its identity; and by none that the control
// plane does not hear.
func TestADaemonIsUpgraded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.begin()
	second := another(first)
	s.offer(second)
	said, err := s.upgrade()
	require.NoError(t, err, said)
	require.Contains(t, said, "the control plane has heard the new daemon")
	require.Equal(t, second, s.read("forewarm-node"))
	require.Equal(t, first, s.read("forewarm-node.previous"))

	s.offer([]byte("#!/bin/sh\n[ $1 = self-test ]\n"))
	said, err = s.upgrade("--within", "1ms")
	require.Error(t, err)
	require.Contains(t, said, "Error: the control plane did not hear the new one within 1ms; the daemon before is back\n")
	require.Equal(t, second, s.read("forewarm-node"))

	s.offer([]byte("#!/bin/sh\nexit 1\n"))
	said, err = s.upgrade()
	require.Error(t, err)
	require.Contains(t, said, "does not pass its own test, and the old one stays: exit status 1\nNext:  mend on this "+
		"machine what the test names, or upgrade to another version\n")

	said, err = s.upgrade("--from", s.url+"/nowhere")
	require.Error(t, err)
	require.Contains(t, said, "Next:  see whether the address of --from hands out forewarm-node-")
	said, err = s.upgrade("--sha256", strings.Repeat("0", 64))
	require.Error(t, err)
	require.Contains(t, said, "Next:  give the sum that forewarm-node.sha256 has for forewarm-node-")
	for _, from := range []string{s.at("forewarm-node"), "file://" + s.at("forewarm-node"), "ftp://host/x", "https:x"} {
		said, err = s.upgrade("--from", from)
		require.Error(t, err)
		require.Contains(t, said, "Error: --from: must be an https:// (or http://) address\n")
	}
	s.offer(another(second))
	said, err = s.upgrade("--restart", "false")
	require.Error(t, err)
	require.Contains(t, said, "it is in its place: starting it\n")
	require.Contains(t, said, "Error: the restart command failed: false: exit status 1; and the daemon before is not "+
		"back, for the same reason\n")
	require.Equal(t, second, s.read("forewarm-node"))
}

// The terminal is closed in which somebody upgrades: the upgrade goes on, and so does what starts the daemon.
func TestAnUpgradeOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	second := another(s.begin())
	s.offer(second)
	s.write("hang-up", "#!/bin/sh\nkill -HUP -- -$PPID\nexec "+s.at("restart"))
	listens, says, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, listens.Close())
	defer func() { require.NoError(t, says.Close()) }()
	sum := sha256.Sum256(second)
	c := exec.CommandContext(t.Context(), s.at("forewarm-node"), "upgrade", "--sha256", hex.EncodeToString(sum[:]),
		"--config", s.at("config.yaml"), "--program", s.at("forewarm-node"), "--restart", s.at("hang-up"))
	c.Stdout, c.Stderr, c.SysProcAttr = says, says, &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, c.Run())
	require.Equal(t, second, s.read("forewarm-node"))
	require.NoFileExists(t, s.at("forewarm-node.unwelcomed"))
}

// Who interrupts an upgrade is told what came of it.
func TestAnUpgradeThatIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.begin()
	s.offer([]byte("#!/bin/sh\n[ $1 = self-test ]\n")) // nobody hears it
	s.write("interrupt", "#!/bin/sh\n"+s.at("restart")+"\nkill -INT $PPID\n")
	said, err := s.upgrade("--restart", s.at("interrupt"))
	require.Error(t, err, said)
	require.Contains(t, said, "Error: the upgrade was interrupted; the daemon before is back\n")
	require.Equal(t, first, s.read("forewarm-node"))
}

// The program tests itself against what an earlier daemon has left on the machine.
func TestSelfTest(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	args := []string{"self-test", "--url", "https://x", "--node", "nod_1", "--simulate", "1", "--state-dir", state}
	code, out := command(t.Context(), "", nil, args...)
	require.Zero(t, code, out)
	require.Regexp(t, `ok  what is known of holds .*\nok  the GPUs`, out)
	code, out = command(t.Context(), "", nil, args[:3]...)
	require.Equal(t, exitUsage, code, out)
	require.NoError(t, os.WriteFile(filepath.Join(state, "holds.json"), []byte("{"), 0o600))
	code, out = command(t.Context(), "", nil, args...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "what is known of holds: ")
	for _, wrong := range [][]string{{"upgrade"}, {"upgrade", "--sha256", "abc"}} {
		code, out = command(t.Context(), "", nil, wrong...)
		require.Equal(t, exitUsage, code, out)
		require.Contains(t, out, "64 hexadecimal digits")
	}
}
