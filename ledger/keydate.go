package ledger

import (
	"encoding/hex"
	"strings"
	"time"
)

// KeepAnswers is how long the answer to a request with an idempotency key is
// kept. Sent again later, it would be done again.
const KeepAnswers = 7 * 24 * time.Hour

// IsLapsed reports whether the key says itself that it was made before the oldest
// answer that is kept: nobody can tell any more whether it came before.
func (o Once) IsLapsed(now time.Time) bool {
	made, ok := keyDate(o.Key)
	return ok && made.Before(now.Add(-KeepAnswers))
}

// keyDate reads when a key was made, if it is a UUID of version 7 (RFC 9562) or
// a ULID. Both begin with 48 bits of milliseconds. What would be of before there
// were ULIDs is some other text.
func keyDate(key string) (time.Time, bool) {
	millis, ok := uuidMillis(key)
	if !ok {
		millis, ok = ulidMillis(key)
	}
	made := time.UnixMilli(millis)
	return made, ok && made.Year() >= firstULID
}

const firstULID = 2016

func uuidMillis(key string) (int64, bool) {
	if len(key) != 36 || key[8] != '-' || key[13] != '-' || key[18] != '-' || key[23] != '-' {
		return 0, false
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(key, "-", ""))
	if err != nil || len(raw) != 16 || raw[6]>>4 != 7 || raw[8]>>6 != 2 {
		return 0, false
	}
	millis := int64(0)
	for _, b := range raw[:6] {
		millis = millis<<8 | int64(b)
	}
	return millis, true
}

// crockford are the digits of a ULID.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func ulidMillis(key string) (int64, bool) {
	if len(key) != 26 || key[0] > '7' {
		return 0, false
	}
	millis := int64(0)
	for i, c := range strings.ToUpper(key) {
		digit := strings.IndexRune(crockford, c)
		if digit < 0 {
			return 0, false
		}
		if i < 10 {
			millis = millis<<5 | int64(digit)
		}
	}
	return millis, true
}
