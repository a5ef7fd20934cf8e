package upgrade_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/upgrade"
)

// machine has an old program, and daemons that the control plane hears if their program is a good one.
type machine struct {
	*testing.T
	program  string
	offered  string // what the control plane hands out
	status   int
	started  []string // the programs with which a daemon began
	welcomed string
	failing  error // of a restart
}

const (
	oldOne = "#!/bin/sh\nexit 0\n"
	newOne = "#!/bin/sh\n[ \"$*\" = 'self-test --config x' ] && exit 0; exit 1\n"
	mute   = newOne + "# nobody hears it\n"
	broken = "#!/bin/sh\necho it lacks something; exit 3\n"
)

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{T: t, program: filepath.Join(t.TempDir(), "forewarm-node"), offered: newOne, status: http.StatusOK,
		welcomed: "the first"}
	require.NoError(t, os.WriteFile(m.program, []byte(oldOne), 0o700)) //nolint:gosec // a program
	return m
}

func (m *machine) read(path string) string {
	m.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // the test's own
	require.NoError(m, err)
	return string(text)
}

func (m *machine) restart(context.Context) error {
	program := m.read(m.program)
	m.started = append(m.started, program)
	if program == newOne {
		m.welcomed = "the second"
	}
	return m.failing
}

// upgrade asks for a program of a sum.
func (m *machine) upgrade(of string) error {
	m.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(m.status)
		_, _ = w.Write([]byte(m.offered))
	}))
	defer server.Close()
	return upgrade.Run(m.Context(), upgrade.Config{Program: m.program, URL: server.URL, SHA256: sumOf(of),
		HTTP: server.Client(), SelfTest: []string{"self-test", "--config", "x"}, Restart: m.restart,
		Welcomed: func() (string, error) { return m.welcomed, nil },
		Within:   20 * time.Millisecond, Every: time.Millisecond, Say: func(string) {}})
}

func sumOf(program string) string {
	sum := sha256.Sum256([]byte(program))
	return hex.EncodeToString(sum[:])
}

// files are those beside the program.
func (m *machine) files() (names []string) {
	m.Helper()
	all, err := os.ReadDir(filepath.Dir(m.program))
	require.NoError(m, err)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func TestANewProgramTakesThePlaceOfTheOldOne(t *testing.T) {
	m := newMachine(t)
	for _, previous := range []string{oldOne, newOne} { // a second upgrade finds what the first has kept
		require.NoError(t, m.upgrade(newOne))
		require.Equal(t, newOne, m.read(m.program))
		require.Equal(t, previous, m.read(m.program+upgrade.Previous))
		require.Equal(t, []string{"forewarm-node", "forewarm-node.previous", "forewarm-node.sums"}, m.files())
		info, err := os.Stat(m.program)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
		m.welcomed = "the first"
	}
	require.Equal(t, []string{newOne, newOne}, m.started)
}

// What is not the program that was meant, and what does not pass its own test, changes nothing.
func TestAProgramThatIsNoGoodIsNotTried(t *testing.T) {
	m := newMachine(t)
	require.ErrorContains(t, m.upgrade(broken), "its SHA-256 sum is")
	m.offered = broken
	require.ErrorContains(t, m.upgrade(broken), "the old one stays: exit status 3: it lacks something")
	m.status = http.StatusNotFound
	require.ErrorContains(t, m.upgrade(broken), "404")
	require.Empty(t, m.started)
	require.Equal(t, []string{"forewarm-node"}, m.files())
	require.Equal(t, oldOne, m.read(m.program))
	m.program += "-elsewhere"
	require.ErrorContains(t, m.upgrade(newOne), "there is nothing to upgrade")
}

// The old program comes back where the control plane does not hear the new one, and where it cannot be started.
func TestAProgramThatIsNotWelcomeIsRolledBack(t *testing.T) {
	m := newMachine(t)
	m.offered = mute
	var back *upgrade.RolledBackError
	require.ErrorAs(t, m.upgrade(mute), &back)
	require.EqualError(t, back, "the daemon before is back: the control plane did not hear the new one within 20ms")
	require.Equal(t, []string{mute, oldOne}, m.started)
	require.Equal(t, []string{"forewarm-node", "forewarm-node.sums"}, m.files())
	require.Equal(t, sumOf(mute)+"\n"+sumOf(oldOne)+"\n", m.read(m.program+upgrade.Sums), "either may be there now")

	m.offered, m.failing = newOne, errors.New("no systemd")
	require.ErrorAs(t, m.upgrade(newOne), &back)
	require.EqualError(t, back, "the daemon before is back: no systemd; and it does not run: no systemd")
	require.Equal(t, oldOne, m.read(m.program))
}
