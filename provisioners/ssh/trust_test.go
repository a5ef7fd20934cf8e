package ssh_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/ssh"
)

// keyLine is a public key as a .pub file holds it.
func keyLine(key xssh.PublicKey) string {
	return strings.TrimSpace(string(xssh.MarshalAuthorizedKey(key)))
}

func TestHostKeyInTheConfig(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	l.config.KnownHosts = ""
	for i, m := range l.machines {
		l.config.Hosts[i].HostKey = keyLine(m.key.PublicKey()) + " comment"
	}
	l.claimMachine(l.openFleet(), 1)
}

// A host that is not the one that is known is not asked, and is not absent.
func TestStrangers(t *testing.T) {
	t.Parallel()
	stranger, _ := newKey(t)
	for name, know := range map[string]func(l *lab, h *ssh.Host) string{
		"fixed key": func(_ *lab, h *ssh.Host) string {
			h.HostKey = keyLine(stranger.PublicKey())
			return ""
		},
		"known hosts": func(_ *lab, h *ssh.Host) string {
			return knownhosts.Line([]string{h.Address}, stranger.PublicKey()) + "\n"
		},
	} {
		l := newLab(t, 1)
		made := l.claimMachine(l.openFleet(), 1)
		var lines string
		for i := range l.config.Hosts {
			lines += know(l, &l.config.Hosts[i])
		}
		if lines != "" {
			require.NoError(t, os.WriteFile(l.config.KnownHosts, []byte(lines), 0o600))
		}
		f := l.openFleet()
		before := len(l.calls)
		_, err := f.Get(t.Context(), made.ID)
		requireKind(t, provisioners.KindDenied, err)
		_, err = f.List(t.Context(), "dep")
		requireKind(t, provisioners.KindDenied, err)
		_, err = f.Create(t.Context(), "token-1", testSpec("nod_1"))
		requireKind(t, provisioners.KindDenied, err)
		requireKind(t, provisioners.KindDenied, f.Delete(t.Context(), made.ID))
		require.Len(t, l.calls, before, name)
	}
}

// One host that refuses us says nothing about the others: it may have the
// machine, so the answer is not final.
func TestOneHostRefuses(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	l.config.Hosts[0].User = "somebody"
	_, err := l.openFleet().Create(t.Context(), "token-1", testSpec("nod_1"))
	requireKind(t, provisioners.KindTransient, err)
	l.config.Hosts[1].User = "somebody"
	_, err = l.openFleet().Create(t.Context(), "token-1", testSpec("nod_1"))
	requireKind(t, provisioners.KindDenied, err)
}

func TestFilesThatStopTheStart(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(l *lab){
		"can be read by others": func(l *lab) { require.NoError(t, os.Chmod(l.config.IdentityFile, 0o640)) },
		"no such file":          func(l *lab) { require.NoError(t, os.Remove(l.config.IdentityFile)) },
		"no key found": func(l *lab) {
			require.NoError(t,
				os.WriteFile(l.config.IdentityFile, []byte("x"), 0o600))
		},
		"known_hosts: open":   func(l *lab) { require.NoError(t, os.Remove(l.config.KnownHosts)) },
		"has no key of gpu-0": func(l *lab) { require.NoError(t, os.WriteFile(l.config.KnownHosts, nil, 0o600)) },
	} {
		l := newLab(t, 1)
		spoil(l)
		_, err := ssh.New(l.config, l.clock)
		require.ErrorContains(t, err, want)
	}
}

func TestPassphrase(t *testing.T) {
	l := newLab(t, 1)
	key, err := os.ReadFile(l.config.IdentityFile)
	require.NoError(t, err)
	private, err := xssh.ParseRawPrivateKey(key)
	require.NoError(t, err)
	block, err := xssh.MarshalPrivateKeyWithPassphrase(*private.(*ed25519.PrivateKey), "", []byte("open sesame"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(l.config.IdentityFile, pem.EncodeToMemory(block), 0o600))
	_, err = ssh.New(l.config, l.clock)
	require.ErrorContains(t, err, "passphrase")
	l.config.PassphraseEnv = "FOREWARM_TEST_PASSPHRASE"
	t.Setenv("FOREWARM_TEST_PASSPHRASE", "open sesame")
	l.claimMachine(l.openFleet(), 1)
	t.Setenv("FOREWARM_TEST_PASSPHRASE", "something else")
	_, err = ssh.New(l.config, l.clock)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "something else")
}

// A key that is loosened or removed later is noticed by the next call.
func TestKeyIsReadAnew(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	f := l.openFleet()
	made := l.claimMachine(f, 1)
	require.NoError(t, os.Chmod(l.config.IdentityFile, 0o644))
	_, err := f.Get(t.Context(), made.ID)
	requireKind(t, provisioners.KindDenied, err)
	require.NoError(t, os.Chmod(l.config.IdentityFile, 0o600))
	l.getInstance(f, made.ID)
}

func TestConfigMistakesAreNamed(t *testing.T) {
	t.Parallel()
	good := ssh.Host{Name: "a", Address: "a", User: "u", Type: "t", Model: "m", GPUs: 1}
	other := good
	other.Name, other.Address, other.GPUs = "b", "b:x", 2
	_, err := ssh.New(ssh.Config{
		Name: "Not A Name", Hosts: []ssh.Host{good, good, other,
			{Name: "c", Address: ":22", HostKey: "x", GPUs: -1, MemoryMiB: -1, Price: -1}},
		IdentityFile: "id", KnownHosts: "known", PassphraseEnv: "A B", StateDir: "$HOME/x", ProbeTimeout: 1,
		ConnectTimeout: -1, Timeout: 1,
		Boot: ssh.Boot{P50: 2, P95: 1},
		Setup: ssh.Setup{Copy: []ssh.File{{From: "x", To: "y"}, {From: "/x", To: "y/", Mode: "rwx"}},
			Env: []string{"A=B"}},
	}, clock.System{})
	for _, want := range []string{
		"name", "identity_file", "known_hosts", "passphrase_env", "state_dir", "probe_timeout", "connect_timeout",
		"timeout:", "boot",
		"hosts[1]: name, address", "hosts[2]: address", "hosts[2]: type: t", "hosts[3]: address", "user", "type, model",
		"gpus", "memory_mib",
		"price_per_hour", "host_key", "setup.copy[0]", "setup.copy[1]: want", "setup.copy[1]: mode", "setup.env[0]",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = ssh.New(ssh.Config{Hosts: []ssh.Host{good}, IdentityFile: filepath.Join(t.TempDir(), "id")},
		clock.System{})
	require.ErrorContains(t, err, "hosts[0]: host_key: is empty, and there is no known_hosts")
	_, err = ssh.New(ssh.Config{}, clock.System{})
	require.ErrorContains(t, err, "hosts: want at least one")
}
