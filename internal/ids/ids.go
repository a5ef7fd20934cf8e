// Package ids makes and checks the identifiers of every stored object: a
// three-letter kind, an underscore and 26 characters of Crockford base32 that
// hold a UUIDv7 (RFC 9562), for example rsv_01ke4j5m3zf8k9v7q2x6t0b1cd. They
// sort by the time they were made.
package ids

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// The kinds of identifier.
const (
	Organization = "org"
	User         = "usr"
	Key          = "key"
	Pool         = "pol"
	Node         = "nod"
	Reservation  = "rsv"
	Allocation   = "alc"
	Schedule     = "sch"
	Job          = "job"
	Array        = "arr"
	Agent        = "agt"
	Task         = "tsk"
	Forecast     = "fct"
	Request      = "req"
	Decision     = "dec"
	Plan         = "pln"
	Server       = "srv"
)

// length of an identifier's part after the underscore.
const length = 26

var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// Source makes identifiers that never repeat. Implementations are safe for
// concurrent use.
type Source interface {
	New(kind string) string
}

// UUID makes identifiers from random UUIDv7 values.
type UUID struct{}

// New returns a fresh identifier of the kind.
func (UUID) New(kind string) string {
	id := uuid.Must(uuid.NewV7())
	return kind + "_" + encoding.EncodeToString(id[:])
}

// First returns what is less than every identifier of the kind that a UUID makes at a
// time or later, and not less than those that it made before that millisecond.
func First(kind string, at time.Time) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(max(at.UnixMilli(), 0))<<16) //nolint:gosec // not negative
	return kind + "_" + encoding.EncodeToString(id[:])
}

// Sequence makes predictable identifiers that count up from 1, for tests and
// the simulator. The zero value is ready.
type Sequence struct{ n atomic.Uint64 }

// New returns the next identifier of the kind.
func (s *Sequence) New(kind string) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[8:], s.n.Add(1))
	return kind + "_" + encoding.EncodeToString(id[:])
}

// Derived returns the identifier of the kind that belongs to the parts: the
// same parts give the same identifier. It names objects that must exist at most
// once for their cause, such as the reservation of one date of a schedule.
func Derived(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return kind + "_" + encoding.EncodeToString(sum[:16])
}

// Check says why s is not an identifier of the kind, or returns nil.
func Check(kind, s string) error {
	rest, ok := strings.CutPrefix(s, kind+"_")
	if !ok {
		return fmt.Errorf("%q does not begin with %q", s, kind+"_")
	}
	// The decoder skips line breaks and ignores the two spare bits at the end;
	// only the one spelling that New makes is an identifier.
	id, err := encoding.DecodeString(rest)
	if err != nil || len(rest) != length || encoding.EncodeToString(id) != rest {
		return fmt.Errorf("%q is not an identifier: want %s_ and %d characters", s, kind, length)
	}
	return nil
}

// Resembles reports whether people would take text for an identifier: of any of
// the kinds above, or of a key, which has ten letters and digits without a kind.
// Words, also with digits or one capital in front, are none: few keys have such
// an id.
func Resembles(text string) bool {
	if kind, rest, found := strings.Cut(text, "_"); found && len(rest) == length && slices.Contains(kinds, kind) {
		return true
	}
	return keyForm.MatchString(text) && strings.ContainsFunc(text[1:], unicode.IsUpper)
}

var keyForm = regexp.MustCompile(`^[0-9A-Za-z]{10}$`)

var kinds = []string{
	Organization, User, Key, Pool, Node, Reservation, Allocation, Schedule, Agent, Task, Forecast, Request, Decision,
	Plan,
}
