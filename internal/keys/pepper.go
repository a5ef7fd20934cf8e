package keys

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/internal/obs"
)

// minPepper is the least length of a pepper in bytes: that of its HMAC.
const minPepper = 32

// Pepper is the installation's secret that goes into every stored hash, so that
// a stolen database is no list of hashes to try keys on. It lives outside the
// database. The zero value verifies nothing.
//
// A 256-bit secret cannot be guessed, so the hash may be a fast one: HMAC-SHA-256
// takes 2 µs where bcrypt takes 70 ms, which anyone could make us spend.
type Pepper struct {
	version int
	key     obs.Secret
}

// ParsePepper reads "<version>:<key>", where the version is a number from 1 up
// and the key 32 bytes or more in hexadecimal or base64 (standard or URL
// alphabet). To rotate, add a pepper of a higher version, hash with it from then
// on, and keep the old one until no stored hash needs it. Errors never quote the
// key.
func ParsePepper(text string) (Pepper, error) {
	number, material, found := strings.Cut(strings.TrimSpace(text), ":")
	version, err := strconv.Atoi(number)
	if !found || err != nil || version < 1 {
		return Pepper{}, errors.New("reading the pepper: want <version>:<key>, the version a number from 1 up")
	}
	key, err := decodePepper(material)
	if err != nil {
		return Pepper{}, fmt.Errorf("reading the pepper of version %d: %w", version, err)
	}
	if len(key) < minPepper {
		return Pepper{}, fmt.Errorf("reading the pepper of version %d: %d bytes, want %d or more", version, len(key),
			minPepper)
	}
	return Pepper{version: version, key: obs.NewSecret(string(key))}, nil
}

// decodePepper tries hexadecimal first: 64 hexadecimal digits are also base64.
func decodePepper(material string) ([]byte, error) {
	if key, err := hex.DecodeString(material); err == nil {
		return key, nil
	}
	bare := strings.TrimRight(material, "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := encoding.Strict().DecodeString(bare); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("the key is neither hexadecimal nor base64")
}

// Version returns the number that Hash puts in front.
func (p Pepper) Version() int { return p.version }

// Hash returns what to store of a key's secret: the pepper's version and the
// HMAC-SHA-256, as "<version>:<64 hexadecimal digits>".
func (p Pepper) Hash(secret obs.Secret) string {
	mac := hmac.New(sha256.New, []byte(p.key.Reveal()))
	_, _ = mac.Write([]byte(secret.Reveal())) // a hash never fails to write
	return strconv.Itoa(p.version) + ":" + hex.EncodeToString(mac.Sum(nil))
}

// Derive returns 32 bytes for another purpose, which the label names: a key that
// tells nothing of the pepper, and that no hash of a secret can be.
func (p Pepper) Derive(label string) []byte {
	mac := hmac.New(sha256.New, []byte(p.key.Reveal()))
	_, _ = mac.Write([]byte("derive\x00" + label)) // a hash never fails to write
	return mac.Sum(nil)
}

// Verify reports whether stored is the hash of secret under this pepper, in a
// time that does not depend on where they differ. A hash of another version is
// false, so a caller with several peppers tries each.
func (p Pepper) Verify(secret obs.Secret, stored string) bool {
	if p.key.IsZero() {
		return false
	}
	return hmac.Equal([]byte(p.Hash(secret)), []byte(stored))
}
