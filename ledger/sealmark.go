package ledger

import (
	"context"
	"crypto/hmac"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
)

// SealMark is the newest seal that a process has seen, and when. The zero value
// is before the first.
type SealMark struct {
	Number int64     `json:"number"`
	MAC    string    `json:"mac"` // in hexadecimal
	At     time.Time `json:"at"`  // by the database's clock
}

// isOf reports whether the mark is of this seal.
func (m SealMark) isOf(s Seal) bool { return Anchor{m.Number, m.MAC}.isOf(s) }

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

// Events about the journal itself have this subject. They are the operators'.
const (
	journalSubject  = "journal"
	journalBehind   = "journal.behind"
	journalAccepted = "journal.accepted"
)

// sealWatch is when a process last told that the journal is behind.
type sealWatch struct {
	mu   sync.Mutex
	told time.Time
}

// tellEvery is how often one process tells it at most.
const tellEvery = time.Minute

// WatchSeals compares the journal's seals with the newest one that this process
// has seen, and remembers the newest. *JournalBehindError says that it is not
// there any more: the journal was written anew or cut off, or an older copy
// restored. An event then tells of it, and nothing is sealed before an operator
// accepts the journal as it is.
func (l Journal) WatchSeals(ctx context.Context) error {
	if l.cfg.Seals == (SealKey{}) || l.cfg.SealMemory == nil {
		return nil
	}
	var last Seal
	var now time.Time
	err := l.store.Read(ctx, func(r Reader) (err error) {
		if err = checkMark(l.engine, r); err != nil {
			return err
		}
		now = r.Now()
		last, err = r.LastSeal()
		return err
	})
	if err != nil {
		return tellBehind(ctx, l.engine, fmt.Errorf("comparing the journal's seals with those seen before: %w", err))
	}
	rememberSeal(l.engine, last, now)
	return nil
}

// rememberSeal keeps the newest seal that was seen.
func rememberSeal(l *engine, s Seal, now time.Time) {
	if l.cfg.SealMemory == nil {
		return
	}
	if before, err := l.cfg.SealMemory.Load(); err == nil && before.isOf(s) {
		return
	}
	l.cfg.SealMemory.Save(SealMark{Number: s.Number, MAC: hex.EncodeToString(s.MAC), At: now})
}

// checkMark fails with *JournalBehindError when the newest seal that this process
// has seen is not in the journal, and no operator has accepted that since.
func checkMark(l *engine, r Reader) error {
	if l.cfg.SealMemory == nil {
		return nil
	}
	mark, err := l.cfg.SealMemory.Load()
	if err != nil || mark.Number == 0 {
		return err
	}
	here, err := sealInChain(r, Anchor{mark.Number, mark.MAC})
	if err != nil || here {
		return err
	}
	if accepted, err := acceptedSince(l, r, mark.At); err != nil || accepted {
		return err
	}
	last, err := r.LastSeal()
	if err != nil {
		return err
	}
	return &JournalBehindError{What: fmt.Sprintf(
		"seal %d:%s, seen by %s (%s), is not in the journal, whose last seal is %d: the journal was written anew or "+
			"cut off, or an older copy restored",
		mark.Number, mark.MAC, l.cfg.SealMemory.Where(), mark.At.UTC().Format(time.RFC3339), last.Number)}
}

// sealInChain reports whether a seal is in the chain; the zero one always is.
func sealInChain(r Reader, a Anchor) (bool, error) {
	if a.Number == 0 {
		return true, nil
	}
	list, err := r.Seals(a.Number-1, 1)
	return len(list) > 0 && a.isOf(list[0]), err
}

// tellBehind writes an event when the error says that the journal is behind,
// unless one stands. It returns the error.
func tellBehind(ctx context.Context, l *engine, err error) error {
	behind, ok := errors.AsType[*JournalBehindError](err)
	if !ok {
		return err
	}
	return errors.Join(err, l.inOwnTx(ctx, SystemActor("seals"), func(tx *groupTx) error {
		gap, gapErr := toldGap(l, tx.port)
		if gapErr != nil || gap != nil || !l.watch.mayTell(tx.now()) {
			return gapErr
		}
		tx.addEvent(Event{Type: journalBehind, Subject: journalSubject, Reason: "seal-missing", Message: behind.What})
		return nil
	}))
}

func (w *sealWatch) mayTell(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.told.IsZero() && now.Sub(w.told) < tellEvery {
		return false
	}
	w.told = now
	return true
}

// JournalGap is what is missing from the journal's seals.
type JournalGap struct {
	Since time.Time
	What  string
}

// JournalGap returns what some process has told to be missing, or this one
// misses, and no operator has accepted; nil: nothing.
func (l Journal) JournalGap(r Reader) (*JournalGap, error) {
	gap, err := toldGap(l.engine, r)
	if err != nil || gap != nil || l.cfg.Seals == (SealKey{}) {
		return gap, err
	}
	err = checkMark(l.engine, r)
	if behind, ok := errors.AsType[*JournalBehindError](err); ok {
		return &JournalGap{Since: r.Now(), What: behind.What}, nil
	}
	return nil, err
}

// toldGap is the first that was told since an operator last accepted the journal.
func toldGap(l *engine, r Reader) (gap *JournalGap, err error) {
	err = aboutJournal(l, r, func(e Event) error {
		switch {
		case e.Type == journalBehind && gap == nil:
			gap = &JournalGap{Since: e.At, What: e.Message}
		case e.Type == journalAccepted && acceptedAnchor(l, e) != nil:
			gap = nil
		}
		return nil
	})
	return gap, err
}

// acceptedSince reports whether an operator has accepted a journal since, of which
// this one is the continuation.
func acceptedSince(l *engine, r Reader, since time.Time) (accepted bool, err error) {
	err = aboutJournal(l, r, func(e Event) error {
		base := acceptedAnchor(l, e)
		if base == nil || !e.At.After(since) {
			return nil
		}
		here, err := sealInChain(r, *base)
		accepted = accepted || here
		return err
	})
	return accepted, err
}

// aboutJournal reads the events about the journal itself.
func aboutJournal(l *engine, r Reader, each func(Event) error) error {
	const page = 500
	for after := int64(0); ; {
		found, err := r.Events(Scope{All: true}, EventFilter{After: after, Subject: journalSubject, Type: "journal."},
			page)
		if err != nil {
			return fmt.Errorf("reading events about the journal: %w", err)
		}
		for _, e := range found {
			if err := each(e); err != nil {
				return err
			}
			after = e.Seq
		}
		if len(found) < page {
			return nil
		}
	}
}

// acceptedText is the message of an acceptance: the last seal of what was
// accepted, and a proof that only who has the key can make.
const acceptedText = "an operator accepted the journal as it is, up to seal %s with proof %s"

// AcceptJournal says that the journal is right although seals are missing that
// some process has seen: the database was restored from a backup, or what is
// missing was looked into. Sealing then goes on. Only an operator may.
func (l Journal) AcceptJournal(ctx context.Context, actor Actor) error {
	if actor.Role != Operator {
		return ErrDenied
	}
	if l.cfg.Seals == (SealKey{}) {
		return &StateError{Subject: "the journal", State: "without a key for seals", Asked: "be accepted"}
	}
	var last Seal
	var now time.Time
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) (err error) {
		if last, err = tx.port.LastSeal(); err != nil {
			return fmt.Errorf("reading the last seal: %w", err)
		}
		now = tx.now()
		proof := hex.EncodeToString(l.cfg.Seals.acceptanceProof(now, last.Anchor()))
		tx.addEvent(Event{Type: journalAccepted, Subject: journalSubject, Reason: "accepted",
			Message: fmt.Sprintf(acceptedText, last.Anchor(), proof)})
		return nil
	})
	if err != nil {
		return err
	}
	rememberSeal(l.engine, last, now)
	return nil
}

// acceptanceProof is the proof of an acceptance at a time.
func (k SealKey) acceptanceProof(at time.Time, anchor string) []byte {
	h := k.keyedHash(labelAccept)
	_, _ = h.Write(appendText(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro())),
		anchor)) //nolint:gosec // the same bits
	return h.Sum(nil)
}

// acceptedAnchor returns the last seal of what an event accepts; nil: it accepts nothing,
// or nobody with the key has written it.
func acceptedAnchor(l *engine, e Event) *Anchor {
	var anchor, proof string
	if e.Type != journalAccepted || l.cfg.Seals == (SealKey{}) {
		return nil
	}
	if _, err := fmt.Sscanf(e.Message, acceptedText, &anchor, &proof); err != nil {
		return nil
	}
	raw, err := hex.DecodeString(proof)
	if err != nil || !hmac.Equal(raw, l.cfg.Seals.acceptanceProof(e.At, anchor)) {
		return nil
	}
	if anchor == (Seal{}).Anchor() {
		return &Anchor{}
	}
	base, err := ParseAnchor(anchor)
	if err != nil {
		return nil
	}
	return &base
}
