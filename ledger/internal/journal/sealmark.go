package journal

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Events about the journal itself have this subject. They are the operators'.
const (
	journalSubject  = "journal"
	journalBehind   = "journal.behind"
	journalAccepted = "journal.accepted"
)

// WatchSeals compares the journal's seals with the newest one that this process
// has seen, and remembers the newest. *JournalBehindError says that it is not
// there any more: the journal was written anew or cut off, or an older copy
// restored. An event then tells of it, and nothing is sealed before an operator
// accepts the journal as it is.
func (l Journal) WatchSeals(ctx context.Context) error {
	if l.Config.Seals == (ledger.SealKey{}) || l.Config.SealMemory == nil {
		return nil
	}
	var last ledger.Seal
	var now time.Time
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		if err = checkMark(l.Engine, r); err != nil {
			return err
		}
		now = r.Now()
		last, err = r.LastSeal()
		return err
	})
	if err != nil {
		return tellBehind(ctx, l.Engine, fmt.Errorf("comparing the journal's seals with those seen before: %w", err))
	}
	rememberSeal(l.Engine, last, now)
	return nil
}

// rememberSeal keeps the newest seal that was seen.
func rememberSeal(l *txn.Engine, s ledger.Seal, now time.Time) {
	if l.Config.SealMemory == nil {
		return
	}
	if before, err := l.Config.SealMemory.Load(); err == nil && before.IsOf(s) {
		return
	}
	l.Config.SealMemory.Save(ledger.SealMark{Number: s.Number, MAC: hex.EncodeToString(s.MAC), At: now})
}

// checkMark fails with *JournalBehindError when the newest seal that this process
// has seen is not in the journal, and no operator has accepted that since.
func checkMark(l *txn.Engine, r ledger.Reader) error {
	if l.Config.SealMemory == nil {
		return nil
	}
	mark, err := l.Config.SealMemory.Load()
	if err != nil || mark.Number == 0 {
		return err
	}
	here, err := sealInChain(r, ledger.Anchor{Number: mark.Number, MAC: mark.MAC})
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
	return &ledger.JournalBehindError{What: fmt.Sprintf(
		"seal %d:%s, seen by %s (%s), is not in the journal, whose last seal is %d: the journal was rewritten or "+
			"truncated, or an older copy restored",
		mark.Number, mark.MAC, l.Config.SealMemory.Where(), mark.At.UTC().Format(time.RFC3339), last.Number)}
}

// sealInChain reports whether a seal is in the chain; the zero one always is.
func sealInChain(r ledger.Reader, a ledger.Anchor) (bool, error) {
	if a.Number == 0 {
		return true, nil
	}
	list, err := r.Seals(a.Number-1, 1)
	return len(list) > 0 && a.IsOf(list[0]), err
}

// tellBehind writes an event when the error says that the journal is behind,
// unless one stands. It returns the error.
func tellBehind(ctx context.Context, l *txn.Engine, err error) error {
	behind, ok := errors.AsType[*ledger.JournalBehindError](err)
	if !ok {
		return err
	}
	return errors.Join(err, l.InOwnTx(ctx, ledger.SystemActor("seals"), func(tx *txn.Tx) error {
		gap, gapErr := toldGap(l, tx.Port)
		if gapErr != nil || gap != nil || !l.SealWatch.MayTell(tx.Now()) {
			return gapErr
		}
		tx.AddEvent(ledger.Event{Type: journalBehind, Subject: journalSubject, Reason: "seal-missing",
			Message: behind.What})
		return nil
	}))
}

// JournalGap returns what some process has told to be missing, or this one
// misses, and no operator has accepted; nil: nothing.
func (l Journal) JournalGap(r ledger.Reader) (*ledger.JournalGap, error) {
	gap, err := toldGap(l.Engine, r)
	if err != nil || gap != nil || l.Config.Seals == (ledger.SealKey{}) {
		return gap, err
	}
	err = checkMark(l.Engine, r)
	if behind, ok := errors.AsType[*ledger.JournalBehindError](err); ok {
		return &ledger.JournalGap{Since: r.Now(), What: behind.What}, nil
	}
	return nil, err
}

// toldGap is the first that was told since an operator last accepted the journal.
func toldGap(l *txn.Engine, r ledger.Reader) (gap *ledger.JournalGap, err error) {
	err = aboutJournal(l, r, func(e ledger.Event) error {
		switch {
		case e.Type == journalBehind && gap == nil:
			gap = &ledger.JournalGap{Since: e.At, What: e.Message}
		case e.Type == journalAccepted && acceptedAnchor(l, e) != nil:
			gap = nil
		}
		return nil
	})
	return gap, err
}

// acceptedSince reports whether an operator has accepted a journal since, of which
// this one is the continuation.
func acceptedSince(l *txn.Engine, r ledger.Reader, since time.Time) (accepted bool, err error) {
	err = aboutJournal(l, r, func(e ledger.Event) error {
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
func aboutJournal(l *txn.Engine, r ledger.Reader, each func(ledger.Event) error) error {
	const page = 500
	for after := int64(0); ; {
		found, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{After: after, Subject: journalSubject,
			Type: "journal."},
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
func (l Journal) AcceptJournal(ctx context.Context, actor ledger.Actor) error {
	if actor.Role != ledger.Operator {
		return ledger.ErrDenied
	}
	if l.Config.Seals == (ledger.SealKey{}) {
		return &ledger.StateError{Subject: "the journal", State: "without a key for seals", Asked: "be accepted"}
	}
	var last ledger.Seal
	var now time.Time
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) (err error) {
		if last, err = tx.Port.LastSeal(); err != nil {
			return fmt.Errorf("reading the last seal: %w", err)
		}
		now = tx.Now()
		proof := hex.EncodeToString(l.Config.Seals.AcceptanceProof(now, last.Anchor()))
		tx.AddEvent(ledger.Event{Type: journalAccepted, Subject: journalSubject, Reason: "accepted",
			Message: fmt.Sprintf(acceptedText, last.Anchor(), proof)})
		return nil
	})
	if err != nil {
		return err
	}
	rememberSeal(l.Engine, last, now)
	return nil
}

// acceptedAnchor returns the last seal of what an event accepts; nil: it accepts nothing,
// or nobody with the key has written it.
func acceptedAnchor(l *txn.Engine, e ledger.Event) *ledger.Anchor {
	var anchor, proof string
	if e.Type != journalAccepted || l.Config.Seals == (ledger.SealKey{}) {
		return nil
	}
	if _, err := fmt.Sscanf(e.Message, acceptedText, &anchor, &proof); err != nil {
		return nil
	}
	raw, err := hex.DecodeString(proof)
	if err != nil || !hmac.Equal(raw, l.Config.Seals.AcceptanceProof(e.At, anchor)) {
		return nil
	}
	if anchor == (ledger.Seal{}).Anchor() {
		return &ledger.Anchor{}
	}
	base, err := ledger.ParseAnchor(anchor)
	if err != nil {
		return nil
	}
	return &base
}
