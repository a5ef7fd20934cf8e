package ledger

import (
	"encoding/binary"
	"time"
)

// SealMark is the newest seal that a process has seen, and when. The zero value
// is before the first.
type SealMark struct {
	Number int64     `json:"number"`
	MAC    string    `json:"mac"` // in hexadecimal
	At     time.Time `json:"at"`  // by the database's clock
}

// IsOf reports whether the mark is of this seal.
func (m SealMark) IsOf(s Seal) bool { return Anchor{m.Number, m.MAC}.IsOf(s) }

// SealMemory keeps a mark where who writes to the database cannot write, so that
// seals that are removed are missed. Implementations are safe for concurrent use.
type SealMemory interface {
	// Load returns what was saved last; the zero mark: nothing yet.
	Load() (SealMark, error)
	// Save keeps a mark. A failure is the implementation's to tell: what is not kept
	// is not missed, and nothing else is wrong.
	Save(m SealMark)
	// Where is the place, for people.
	Where() string
}

// JournalBehindError says that seals that somebody has seen are not in the journal.
type JournalBehindError struct{ What string }

// Error says which.
func (e *JournalBehindError) Error() string { return e.What }

// JournalGap is what is missing from the journal's seals.
type JournalGap struct {
	Since time.Time
	What  string
}

// AcceptanceProof is the proof of an acceptance at a time.
func (k SealKey) AcceptanceProof(at time.Time, anchor string) []byte {
	h := k.keyedHash(labelAccept)
	_, _ = h.Write(appendText(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro())),
		anchor)) //nolint:gosec // the same bits
	return h.Sum(nil)
}
