package upgrade_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/upgrade"
)

// machine has an old program, and daemons that the control plane hears if their program is a good one.
type machine struct {
	*testing.T
	program   string
	offered   string // what the control plane hands out
	status    int
	said      []string
	started   []string        // the programs with which a daemon began
	good      map[string]bool // that the control plane hears
	welcomed  upgrade.Daemon
	up        int64  // for how long the machine has been
	failing   error  // of a restart
	meanwhile func() // what happens while a daemon is started
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
		good: map[string]bool{oldOne: true, newOne: true},
		up:   100, welcomed: upgrade.Daemon{BootID: "boot", Began: 50}}
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
	if m.meanwhile != nil {
		m.meanwhile()
	}
	m.up++
	if m.good[program] {
		m.welcomed = m.now()
	}
	return m.failing
}

// now is a daemon that begins now.
func (m *machine) now() upgrade.Daemon { return upgrade.Daemon{BootID: "boot", Began: m.up} }

// upgrade asks for a program of a sum.
func (m *machine) upgrade(of string) error {
	m.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(m.status)
		_, _ = w.Write([]byte(m.offered))
	}))
	defer server.Close()
	return upgrade.Run(m.Context(), upgrade.Config{Program: m.program, URL: server.URL + "/program?secret",
		SHA256: sumOf(of), HTTP: server.Client(), SelfTest: []string{"self-test", "--config", "x"}, Restart: m.restart,
		Welcomed: func() (upgrade.Daemon, error) { return m.welcomed, nil },
		Now:      func() (upgrade.Daemon, error) { return m.now(), nil },
		Within:   20 * time.Millisecond, WithinAgain: 20 * time.Millisecond, Every: time.Millisecond,
		Say: func(text string) { m.said = append(m.said, text) }})
}

// errKilled is how an upgrade ends that is killed.
var errKilled = errors.New("killed")

// killed asks for the program of a sum, and is killed when that has its place and no daemon has begun with it.
func (m *machine) killed(of string) {
	m.Helper()
	m.offered, m.meanwhile = of, func() { panic(errKilled) }
	require.PanicsWithError(m, errKilled.Error(), func() { _ = m.upgrade(of) })
	m.meanwhile = nil
	require.Equal(m, of, m.read(m.program))
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
	third := newOne + "# a third one\n"
	m.good[third] = true
	for _, of := range []struct{ next, previous string }{{newOne, oldOne}, {third, newOne}} { // it finds what was kept
		m.offered = of.next
		require.NoError(t, m.upgrade(of.next))
		require.Equal(t, of.next, m.read(m.program))
		require.Equal(t, of.previous, m.read(m.program+upgrade.Previous))
		require.Equal(t, []string{"forewarm-node", "forewarm-node.lock", "forewarm-node.previous", "forewarm-node.sums"},
			m.files())
		info, err := os.Stat(m.program)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	}
	require.Equal(t, []string{newOne, third}, m.started)
}

// Whoever asks for the version that is there changes nothing: what was kept is the one before it.
func TestTheVersionThatIsThereIsLeftAlone(t *testing.T) {
	m := newMachine(t)
	require.NoError(t, m.upgrade(newOne))
	require.Equal(t, []string{"its sum is right: it tests itself", "it is in its place: starting it",
		"the control plane has heard the new daemon"}, m.said)
	m.said, m.status = nil, http.StatusNotFound
	require.NoError(t, m.upgrade(newOne))
	require.Equal(t, []string{"the program is this version already: nothing is changed"}, m.said)
	require.Equal(t, oldOne, m.read(m.program+upgrade.Previous))
	require.Equal(t, []string{newOne}, m.started)
}

// What is not the program that was meant, and what does not pass its own test, changes nothing.
func TestAProgramThatIsNoGoodIsNotTried(t *testing.T) {
	m := newMachine(t)
	refuses := func(stage upgrade.Stage, says string) {
		t.Helper()
		var failed *upgrade.NotTriedError
		require.ErrorAs(t, m.upgrade(broken), &failed)
		require.Equal(t, stage, failed.Stage)
		require.ErrorContains(t, failed, says)
	}
	refuses(upgrade.Sum, "its SHA-256 sum is")
	m.offered = broken
	refuses(upgrade.SelfTest, "the old one stays: exit status 3: it lacks something")
	m.status = http.StatusNotFound
	refuses(upgrade.Download, "404")
	require.Empty(t, m.started)
	require.Equal(t, []string{"forewarm-node", "forewarm-node.lock"}, m.files())
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
	require.EqualError(t, back, "the control plane did not hear the new one within 20ms; the daemon before is back")
	require.Equal(t, []string{mute, oldOne}, m.started)
	require.Equal(t, m.now(), m.welcomed, "it was heard")
	require.Equal(t, []string{"forewarm-node", "forewarm-node.lock", "forewarm-node.sums"}, m.files())
	require.Equal(t, sumOf(mute)+"\n"+sumOf(oldOne)+"\n", m.read(m.program+upgrade.Sums), "either may be there now")

	m.offered, m.failing = newOne, errors.New("no systemd")
	require.ErrorAs(t, m.upgrade(newOne), &back)
	require.EqualError(t, back, "no systemd; and the daemon before is not back, for the same reason")
	require.Equal(t, oldOne, m.read(m.program))
}

// The old daemon is back once the control plane has heard it, and not when it was started.
func TestAnOldDaemonThatIsNotWelcomeIsNotBack(t *testing.T) {
	m := newMachine(t)
	m.offered, m.good = mute, nil
	var back *upgrade.RolledBackError
	require.ErrorAs(t, m.upgrade(mute), &back)
	require.EqualError(t, back, "the control plane did not hear the new one within 20ms; and the daemon before is not "+
		"back: the control plane did not hear it within 20ms")
	require.Equal(t, oldOne, m.read(m.program))
}

// A daemon that began before, and is heard while it ends, is not the new one; one that began after the machine booted
// anew is.
func TestAnOldDaemonThatIsWelcomedLate(t *testing.T) {
	m := newMachine(t)
	m.offered = mute
	m.meanwhile = func() { m.welcomed.Began = 99 }
	var back *upgrade.RolledBackError
	require.ErrorAs(t, m.upgrade(mute), &back)
	m.meanwhile = func() { m.welcomed = upgrade.Daemon{BootID: "another", Began: 1} }
	require.NoError(t, m.upgrade(mute))
}

// Of two upgrades at once the second changes nothing.
func TestOneUpgradeAtATime(t *testing.T) {
	m := newMachine(t)
	var second error
	m.meanwhile = func() { second = m.upgrade(newOne) }
	require.NoError(t, m.upgrade(newOne))
	require.ErrorContains(t, second, "another upgrade of "+m.program+" is under way")
	require.Equal(t, []string{newOne}, m.started)
	require.Equal(t, oldOne, m.read(m.program+upgrade.Previous))
}

// A program that nobody has heard yet does not take the place of the last that was heard: whoever upgrades after an
// upgrade that was killed can still go back to that.
func TestTheLastGoodProgramIsKept(t *testing.T) {
	m := newMachine(t)
	m.killed(mute)
	m.killed(mute + "# nor this one\n")
	require.Equal(t, oldOne, m.read(m.program+upgrade.Previous))
	require.Contains(t, m.files(), "forewarm-node.unwelcomed")
	m.offered = mute
	var back *upgrade.RolledBackError
	require.ErrorAs(t, m.upgrade(mute), &back)
	require.Equal(t, oldOne, m.read(m.program))
	require.Equal(t, []string{"forewarm-node", "forewarm-node.lock", "forewarm-node.sums"}, m.files())

	m.killed(newOne)
	m.up++
	m.welcomed = m.now() // it began all the same
	third := newOne + "# a third one\n"
	m.offered, m.good = third, map[string]bool{third: true}
	require.NoError(t, m.upgrade(third))
	require.Equal(t, newOne, m.read(m.program+upgrade.Previous), "the one that was heard meanwhile")
	require.NotContains(t, m.files(), "forewarm-node.unwelcomed")
}

// An upgrade that is killed before the new program has its place leaves the old one, which the next one keeps.
func TestAnUpgradeThatIsKilledEarlyLeavesTheOldProgram(t *testing.T) {
	m := newMachine(t)
	require.NoError(t, os.WriteFile(m.program+upgrade.Unwelcomed,
		[]byte(`{"sums":["`+sumOf(newOne)+`"],"from":{"welcomed":{"boot_id":"boot","began":50}}}`), 0o600))
	require.NoError(t, os.WriteFile(m.program+upgrade.Previous, []byte("an older one"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(m.program), ".forewarm-node.next"), []byte("half"), 0o600))
	require.NoError(t, m.upgrade(newOne))
	require.Equal(t, oldOne, m.read(m.program+upgrade.Previous))
	require.Equal(t, []string{"forewarm-node", "forewarm-node.lock", "forewarm-node.previous", "forewarm-node.sums"},
		m.files())
}

// Where the program is may be a secret, as a signed address is: no message tells more of it than its host.
func TestMessagesHideTheAddress(t *testing.T) {
	m := newMachine(t)
	m.status = http.StatusForbidden
	err := m.upgrade(newOne)
	require.ErrorContains(t, err, "downloading the new program from 127.0.0.1:")
	require.NotContains(t, err.Error(), "secret")
	for _, address := range []string{"https://127.0.0.1:1/program?secret", "https://example.com/%zz?secret"} {
		err := upgrade.Run(t.Context(), upgrade.Config{Program: m.program, URL: address, HTTP: http.DefaultClient})
		require.ErrorContains(t, err, "downloading the new program")
		require.NotContains(t, err.Error(), "secret")
	}
}

// A download follows a few redirects, all of them to https, and none that would go on for ever.
func TestRedirectsOfADownload(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		left, _ := strconv.Atoi(r.URL.Path[1:])
		switch {
		case r.URL.Path == "/plain":
			http.Redirect(w, r, plain.URL+"/?secret", http.StatusFound)
		case left > 0:
			http.Redirect(w, r, fmt.Sprintf("/%d?secret", left-1), http.StatusFound)
		}
	}))
	defer server.Close()
	client := server.Client()
	client.CheckRedirect = upgrade.CheckRedirect
	get := func(path string) error {
		answer, err := client.Get(server.URL + path)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	require.NoError(t, get("/5"))
	require.ErrorContains(t, get("/6"), "more than 5 redirects")
	require.ErrorContains(t, get("/plain"), "a redirect leaves https, for 127.0.0.1:")
}
