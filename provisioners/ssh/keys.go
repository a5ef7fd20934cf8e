package ssh

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// readIdentity reads the private key. It is read for every connection, so that a new
// one needs no restart.
func (c Config) readIdentity() (xssh.Signer, error) {
	info, err := os.Stat(c.IdentityFile)
	if err != nil {
		return nil, fmt.Errorf("identity_file: %w", err)
	}
	if loose := info.Mode().Perm() & 0o077; loose != 0 || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("identity_file: %s can be read by others (%v): %w", c.IdentityFile, info.Mode(),
			fs.ErrPermission)
	}
	key, err := os.ReadFile(c.IdentityFile)
	if err != nil {
		return nil, fmt.Errorf("identity_file: %w", err)
	}
	defer clear(key)
	var signer xssh.Signer
	if c.PassphraseEnv == "" {
		signer, err = xssh.ParsePrivateKey(key)
	} else {
		signer, err = xssh.ParsePrivateKeyWithPassphrase(key, []byte(os.Getenv(c.PassphraseEnv)))
	}
	if err != nil {
		return nil, fmt.Errorf("identity_file: %s: %w", c.IdentityFile, err)
	}
	return signer, nil
}

func parseHostKey(line string) (xssh.PublicKey, error) {
	key, _, _, rest, err := xssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, fmt.Errorf("want a line such as ssh-ed25519 AAAA…: %w", err)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("want one key")
	}
	return key, nil
}

// trust is how a host proves itself: whom to believe, and which kinds of key it
// is known by. Without those a server would offer a key of another kind, and a
// known host would look like a stranger.
type trust struct {
	believe    xssh.HostKeyCallback
	algorithms []string
}

func (c Config) trustOf(h Host) (trust, error) {
	if h.HostKey != "" {
		key, err := parseHostKey(h.HostKey)
		if err != nil {
			return trust{}, fmt.Errorf("host_key of %s: %w", h.Name, err)
		}
		return trust{xssh.FixedHostKey(key), signatureAlgorithms(key.Type())}, nil
	}
	believe, err := knownhosts.New(c.KnownHosts)
	if err != nil {
		return trust{}, fmt.Errorf("known_hosts: %w", err)
	}
	// A key that nobody has makes the file say which ones it wants.
	nobody, err := xssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return trust{}, fmt.Errorf("making a key to ask with: %w", err)
	}
	var wanted *knownhosts.KeyError
	if err := believe(h.dialAddress(), &net.TCPAddr{}, nobody); !errors.As(err, &wanted) || len(wanted.Want) == 0 {
		return trust{}, fmt.Errorf("known_hosts: %s has no key of %s at %s", c.KnownHosts, h.Name, h.dialAddress())
	}
	t := trust{believe: believe}
	for _, known := range wanted.Want {
		t.algorithms = append(t.algorithms, signatureAlgorithms(known.Key.Type())...)
	}
	return t, nil
}

// signatureAlgorithms are the signatures that a key of the type can make.
func signatureAlgorithms(keyType string) []string {
	if keyType == xssh.KeyAlgoRSA {
		return []string{xssh.KeyAlgoRSASHA512, xssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// checkFiles reads every file once, so that a mistake in them stops the start.
func (c Config) checkFiles() error {
	_, err := c.readIdentity()
	mistakes := []error{err}
	for _, h := range c.Hosts {
		if !h.OutOfService {
			_, err := c.trustOf(h)
			mistakes = append(mistakes, err)
		}
	}
	return errors.Join(mistakes...)
}
