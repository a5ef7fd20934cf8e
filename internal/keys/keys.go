// Package keys makes, reads and hashes API keys.
//
// A key is fw_<env>_<id>_<secret>_<checksum>: a fixed prefix that scanners for
// leaked secrets find, the environment it belongs to, 10 characters that name
// it, 43 characters of secret (256 bits) and the CRC-32 of all before it. All
// parts are base62 and "_", so that a double click selects the whole. The
// checksum tells a mistyped key from an unknown one without asking a database;
// it protects nothing.
//
// Stored are the id, the last four characters and Pepper.Hash of the secret. Of
// a key only the id may be logged.
package keys

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strings"

	"github.com/forewarm/forewarm/internal/obs"
)

// Pattern finds keys in any text, in the RE2 syntax. It is published for secret
// scanners.
const Pattern = `fw_[a-z][a-z0-9]{0,15}_[0-9A-Za-z]{10}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}`

const (
	prefix         = "fw"
	idLength       = 10
	secretLength   = 43
	checksumLength = 6
	maxLength      = len(prefix) + 16 + idLength + secretLength + checksumLength + 4

	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

var (
	// ErrMalformed is the error of a text that does not have the form of a key.
	ErrMalformed = errors.New("this is not an API key: want fw_<env>_<id>_<secret>_<checksum>")
	// ErrChecksum is the error of a text that has the form of a key, but was
	// mistyped or cut and pasted badly.
	ErrChecksum = errors.New("this API key has a typing error: its checksum does not match")

	whole        = regexp.MustCompile(`^` + Pattern + `$`)
	environments = regexp.MustCompile(`^[a-z][a-z0-9]{0,15}$`)
)

// Key is an API key in its parts. Printing it shows no secret.
type Key struct {
	Env    string     // the environment, such as live or test
	ID     string     // 10 characters; unique, and not secret
	Secret obs.Secret // the 43 characters that are hashed
	Text   obs.Secret // the whole key, to be shown once and never stored
	Last4  string     // how Text ends, by which people recognise a key
}

// Mint makes a new key from random bytes, which come from crypto/rand.Reader
// outside of tests. The environment is 1 to 16 lower-case letters and digits and
// begins with a letter.
func Mint(env string, random io.Reader) (Key, error) {
	if !environments.MatchString(env) {
		return Key{}, fmt.Errorf("minting an API key: environment %q: want 1 to 16 of a-z and 0-9, a letter first", env)
	}
	id, err := randomText(random, idLength)
	if err != nil {
		return Key{}, fmt.Errorf("minting an API key: %w", err)
	}
	secret, err := randomText(random, secretLength)
	if err != nil {
		return Key{}, fmt.Errorf("minting an API key: %w", err)
	}
	body := strings.Join([]string{prefix, env, id, secret}, "_")
	return newKey(env, id, secret, body+"_"+checksum(body)), nil
}

// Parse reads a key as its owner sent it. It proves only the form: whether the
// key exists is for the caller to look up by ID and Pepper.Verify. The errors
// are ErrMalformed and ErrChecksum, and never quote the text.
func Parse(text string) (Key, error) {
	if len(text) > maxLength || !whole.MatchString(text) {
		return Key{}, ErrMalformed
	}
	end := len(text) - checksumLength
	body, sum := text[:end-1], text[end:]
	if subtle.ConstantTimeCompare([]byte(sum), []byte(checksum(body))) != 1 {
		return Key{}, ErrChecksum
	}
	parts := strings.Split(body, "_")
	return newKey(parts[1], parts[2], parts[3], text), nil
}

func newKey(env, id, secret, text string) Key {
	return Key{
		Env: env, ID: id, Secret: obs.NewSecret(secret), Text: obs.NewSecret(text), Last4: text[len(text)-4:],
	}
}

// checksum returns the CRC-32 (IEEE) of body in base62, padded with zeros.
func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var out [checksumLength]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = alphabet[sum%62]
		sum /= 62
	}
	return string(out[:])
}

// randomText draws n characters, each equally likely: bytes of 248 and more are
// thrown away, since 256 is no multiple of 62.
func randomText(random io.Reader, n int) (string, error) {
	out := make([]byte, 0, n)
	var drawn [64]byte
	for len(out) < n {
		if _, err := io.ReadFull(random, drawn[:]); err != nil {
			return "", fmt.Errorf("reading random bytes: %w", err)
		}
		for _, b := range drawn {
			if b < 248 && len(out) < n {
				out = append(out, alphabet[b%62])
			}
		}
	}
	return string(out), nil
}
