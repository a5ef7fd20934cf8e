package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"
)

// Seal vouches for a stretch of the journal: which events there are, and what
// they say. Each is bound to the one before, so that whoever keeps one elsewhere
// can tell whether anything before it was written anew.
type Seal struct {
	Number   int64 // from 1, without gaps
	Format   int   // of the canonical bytes
	KeyID    string
	First    int64 // seq of the first event
	Last     int64
	Count    int
	SealedAt time.Time
	Tags     []byte // see appendTag
	MAC      []byte
}

// Anchor names the seal and what it vouches for: NUMBER:MAC.
func (s Seal) Anchor() string {
	return strconv.FormatInt(s.Number, 10) + ":" + hex.EncodeToString(s.MAC)
}

// Anchor is a seal as somebody wrote it down. The zero value is before the first.
type Anchor struct {
	Number int64
	MAC    string // in hexadecimal
}

// ParseAnchor reads NUMBER:MAC; the empty text is the zero value.
func ParseAnchor(text string) (Anchor, error) {
	if text == "" {
		return Anchor{}, nil
	}
	number, mac, found := strings.Cut(text, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if raw, bad := hex.DecodeString(mac); !found || err != nil || n < 1 || bad != nil || len(raw) != sha256.Size {
		return Anchor{}, errors.New("must be NUMBER:MAC, as forewarm audit verify printed it")
	}
	return Anchor{Number: n, MAC: mac}, nil
}

// IsOf reports whether the anchor is this seal's.
func (a Anchor) IsOf(s Seal) bool { return s.Anchor() == fmt.Sprintf("%d:%s", a.Number, a.MAC) }

// SealKey makes and checks seals. Whoever has it can forge them; it is not in the
// database. The zero value seals nothing.
type SealKey struct{ ID, key string }

// NewSealKey returns the key of 32 bytes or more of secret material.
func NewSealKey(material []byte) SealKey {
	k := SealKey{key: string(material)}
	k.ID = hex.EncodeToString(k.keyedHash(labelID).Sum(nil)[:8])
	return k
}

// String hides the key.
func (k SealKey) String() string { return "seal key " + k.ID }

// GoString hides the key.
func (k SealKey) GoString() string { return k.String() }

// What a hash is for, so that none can stand for another.
const (
	labelID byte = iota
	labelEvent
	labelSeal
	labelAccept
)

func (k SealKey) keyedHash(label byte) hash.Hash {
	h := hmac.New(sha256.New, []byte(k.key))
	_, _ = h.Write([]byte{label}) // a hash never fails to write
	return h
}

// sealFormat is how events are written down to be sealed. A column that is added
// to events gets a new format: seals of older ones go on as they were.
const sealFormat = 1

// canonicalEvent returns what is sealed of an event, the same from either database:
// each text after its length, times in microseconds. The number is not in it: the
// seal binds it, so that an event that moved can be told from one that changed.
func canonicalEvent(format int, e Event) ([]byte, error) {
	if format != 1 {
		return nil, fmt.Errorf("format %d is not known to this version", format)
	}
	var b []byte
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixMicro())) //nolint:gosec // the same bits
	for _, text := range []string{
		e.OrganizationID, e.Type, e.Subject, e.PoolID, e.Actor, e.Via, e.Reason, e.Message, string(e.Decision),
	} {
		b = appendText(b, text)
	}
	return b, nil
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// tagSize is how much of an event's hash is kept: half, as RFC 2104 allows.
const tagSize = sha256.Size / 2

// Tag authenticates one event.
type Tag [tagSize]byte

// TagEvent authenticates one event.
func (k SealKey) TagEvent(format int, e Event) (t Tag, err error) {
	b, err := canonicalEvent(format, e)
	if err != nil {
		return t, err
	}
	h := k.keyedHash(labelEvent)
	_, _ = h.Write(b)
	copy(t[:], h.Sum(nil))
	return t, nil
}

// Tagged is what a seal knows of one event.
type Tagged struct {
	Seq int64
	Tag Tag
}

// appendTag adds an event: how much larger its number is than the one before, and
// its tag.
func appendTag(b []byte, before int64, t Tagged) []byte {
	return append(binary.AppendUvarint(b, uint64(t.Seq-before)), t.Tag[:]...) //nolint:gosec // numbers grow
}

// ReadTags reads them again.
func (s Seal) ReadTags(before int64) ([]Tagged, error) {
	var list []Tagged
	for b := s.Tags; len(b) > 0; {
		step, n := binary.Uvarint(b)
		if n <= 0 || step == 0 || len(b) < n+tagSize {
			return nil, errors.New("its tags cannot be read")
		}
		before += int64(step) //nolint:gosec // the mac was right
		list = append(list, Tagged{Seq: before, Tag: Tag(b[n : n+tagSize])})
		b = b[n+tagSize:]
	}
	return list, nil
}

// SealMAC binds a seal to all that it says and to the seal before.
func (k SealKey) SealMAC(before, s Seal) []byte {
	h := k.keyedHash(labelSeal)
	var b []byte
	for _, n := range []int64{int64(s.Format), s.Number, s.First, s.Last, int64(s.Count), s.SealedAt.UnixMicro()} {
		b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // the same bits
	}
	for _, text := range []string{s.KeyID, string(before.MAC), string(s.Tags)} {
		b = appendText(b, text)
	}
	_, _ = h.Write(b)
	return h.Sum(nil)
}

// MakeSeal makes the seal after another, of one or more events in their order.
func (k SealKey) MakeSeal(before Seal, events []Event, now time.Time) (Seal, error) {
	s := Seal{
		Number: before.Number + 1, Format: sealFormat, KeyID: k.ID, SealedAt: now,
		First: events[0].Seq, Last: events[len(events)-1].Seq, Count: len(events),
	}
	last := before.Last
	for _, e := range events {
		t, err := k.TagEvent(s.Format, e)
		if err != nil {
			return s, err
		}
		s.Tags = appendTag(s.Tags, last, Tagged{e.Seq, t})
		last = e.Seq
	}
	s.MAC = k.SealMAC(before, s)
	return s, nil
}

// SealText is how bytes of a seal are stored.
func SealText(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// SealBytes reads what SealText wrote. What cannot be read is empty, and then no
// seal that holds.
func SealBytes(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return b
}
