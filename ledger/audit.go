package ledger

import (
	"context"
	"crypto/hmac"
	"fmt"
	"time"
)

// AuditRequest asks for a part of the journal to be compared with its seals.
type AuditRequest struct {
	After Anchor // the last seal that was checked; zero: begin with the first
	Known Anchor // a seal that must be in the chain; zero: none
	Limit int    // of seals; zero or more than auditMost: auditMost
}

// auditMost bounds how many seals one answer covers: some 20,000 events.
const auditMost = 20

// Audit is what one part of the journal was found to be.
type Audit struct {
	Seals, Events int
	Last          Seal // the last one that holds; zero: none
	More          bool // there are seals after it
	Newest        int64
	Finding       *AuditFinding // the first thing that is not as it was sealed; nil: none

	// Of what no seal covers yet, when there is no more: its oldest event's time.
	Unsealed      int64
	UnsealedSince time.Time
}

// Kinds of findings.
const (
	AuditChanged     = "event-changed"
	AuditMissing     = "event-missing"
	AuditInserted    = "event-inserted"
	AuditReordered   = "event-reordered"
	AuditSealChanged = "seal-changed"
	AuditSealMissing = "seal-missing"
	AuditOtherKey    = "other-key"
	AuditAnchor      = "anchor-differs"
	AuditBehind      = "seals-behind"
	AuditUnsealed    = "not-sealed"
)

// sealLate is how old events are that should have been sealed, where there is no
// seal at all.
const sealLate = time.Minute

// AuditFinding is one thing that is not as it was sealed.
type AuditFinding struct {
	Kind  string
	Seal  int64 // 0: it is the journal as a whole
	Event int64 // 0: it is the seal
	What  string
}

// VerifyJournal compares a part of the journal with its seals, up to the first
// thing that is not as it was. Only an operator may: it reads every tenant's events.
func (l Journal) VerifyJournal(ctx context.Context, actor Actor, req AuditRequest) (Audit, error) {
	if actor.Role != Operator {
		return Audit{}, ErrDenied
	}
	if l.cfg.Seals == (SealKey{}) {
		return Audit{}, &StateError{Subject: "the journal", State: "without a key for seals", Asked: "be verified"}
	}
	if req.Limit <= 0 || req.Limit > auditMost {
		req.Limit = auditMost
	}
	var found Audit
	var now time.Time
	err := l.store.Read(ctx, func(r Reader) (err error) {
		now = r.Now()
		found, err = audit{Reader: r, key: l.cfg.Seals, req: req}.runAudit()
		if err != nil || found.More || found.Finding != nil && found.Finding.Kind != AuditUnsealed {
			return err
		}
		missed, err := missedSeals(l.engine, r)
		if missed != nil {
			found.Finding = missed
		}
		return err
	})
	if err != nil {
		return Audit{}, fmt.Errorf("verifying the journal: %w", err)
	}
	if found.Finding == nil && !found.More {
		rememberSeal(l.engine, found.Last, now)
	}
	return found, nil
}

// missedSeals tells of seals that were seen, and are not in a chain that holds.
func missedSeals(l *engine, r Reader) (*AuditFinding, error) {
	gap, err := Journal{l}.JournalGap(r)
	if err != nil || gap == nil {
		return nil, err
	}
	return &AuditFinding{Kind: AuditBehind, What: gap.What}, nil
}

// audit is one part being compared.
type audit struct {
	Reader
	key SealKey
	req AuditRequest
}

func (a audit) runAudit() (found Audit, err error) {
	newest, err := a.LastSeal()
	if err != nil {
		return found, err
	}
	found.Newest = newest.Number
	if found.Last, found.Finding, err = a.lastChecked(); err != nil || found.Finding != nil {
		return found, err
	}
	seals, err := a.Seals(found.Last.Number, a.req.Limit)
	if err != nil {
		return found, err
	}
	for _, s := range seals {
		if found.Finding, err = a.checkSeal(found.Last, s); err != nil || found.Finding != nil {
			return found, err
		}
		found.Last = s
		found.Seals++
		found.Events += s.Count
	}
	if found.More = found.Last.Number < newest.Number; found.More {
		return found, nil
	}
	if found.Last.Number < a.req.Known.Number {
		found.Finding = &AuditFinding{Kind: AuditAnchor, Seal: a.req.Known.Number, What: fmt.Sprintf(
			"the chain ends at seal %d, before the one that was kept: its end was cut off, or an older copy restored",
			found.Last.Number)}
		return found, nil
	}
	return found, a.checkUnsealed(&found)
}

// lastChecked finds the seal that was checked last.
func (a audit) lastChecked() (Seal, *AuditFinding, error) {
	if a.req.After == (Anchor{}) {
		return Seal{}, nil, nil
	}
	list, err := a.Seals(a.req.After.Number-1, 1)
	if err != nil {
		return Seal{}, nil, err
	}
	if len(list) == 0 || !a.req.After.isOf(list[0]) {
		return Seal{}, &AuditFinding{Kind: AuditSealChanged, Seal: a.req.After.Number,
			What: "is not the one that was there a moment ago"}, nil
	}
	return list[0], nil, nil
}

// checkSeal compares one seal with the one before and with its events.
func (a audit) checkSeal(before, s Seal) (*AuditFinding, error) {
	finding := func(kind, what string) (*AuditFinding, error) {
		return &AuditFinding{Kind: kind, Seal: s.Number, What: what}, nil
	}
	switch {
	case s.Number != before.Number+1:
		return &AuditFinding{Kind: AuditSealMissing, Seal: before.Number + 1, What: "is missing"}, nil
	case s.KeyID != a.key.id:
		return finding(AuditOtherKey, fmt.Sprintf(
			"was made with key %s, and this server has %s: servers and workers need the same FOREWARM_PEPPER", s.KeyID,
			a.key.id))
	case !hmac.Equal(s.MAC, a.key.sealMAC(before, s)):
		return finding(AuditSealChanged, "is not as it was made")
	case a.req.Known.Number == s.Number && !a.req.Known.isOf(s):
		return finding(AuditAnchor,
			"is not the one that was kept: the journal was written anew, or an older copy restored")
	}
	sealed, err := s.readTags(before.Last)
	if err != nil {
		return finding(AuditSealChanged, err.Error())
	}
	events, err := a.Journal(before.Last, s.Last, len(sealed)+1)
	if err != nil {
		return nil, err
	}
	return a.compareEvents(s, sealed, events)
}

// compareEvents finds the first event that is not as it was sealed.
func (a audit) compareEvents(s Seal, sealed []tagged, events []Event) (*AuditFinding, error) {
	places := make(map[tag]int64, len(sealed))
	for _, t := range sealed {
		places[t.tag] = t.seq
	}
	finding := func(kind string, event int64, format string, args ...any) (*AuditFinding, error) {
		return &AuditFinding{Kind: kind, Seal: s.Number, Event: event, What: fmt.Sprintf(format, args...)}, nil
	}
	for i, want := range sealed {
		if i >= len(events) || events[i].Seq > want.seq {
			return finding(AuditMissing, want.seq, "was removed")
		}
		got, err := a.key.tagEvent(s.Format, events[i])
		if err != nil {
			return nil, err
		}
		place, known := places[got]
		switch {
		case events[i].Seq < want.seq:
			return finding(AuditInserted, events[i].Seq, "was not there when its stretch was sealed")
		case got == want.tag:
		case known:
			return finding(AuditReordered, want.seq, "is what event %d was", place)
		default:
			return finding(AuditChanged, want.seq, "does not say what it said")
		}
	}
	if len(events) > len(sealed) {
		return finding(AuditInserted, events[len(sealed)].Seq, "was not there when its stretch was sealed")
	}
	return nil, nil //nolint:nilnil // no finding, no failure
}

// checkUnsealed looks at what no seal covers yet.
func (a audit) checkUnsealed(found *Audit) error {
	open, err := a.Journal(found.Last.Last, 0, 1)
	if err != nil || len(open) == 0 {
		return err
	}
	end, err := a.JournalEnd()
	found.Unsealed, found.UnsealedSince = end-found.Last.Last, open[0].At
	if found.Last.Number == 0 && a.Now().Sub(open[0].At) > sealLate {
		found.Finding = &AuditFinding{Kind: AuditUnsealed, What: fmt.Sprintf(
			"the journal has %d events, the oldest of %s, and no seal: the seals were removed, or no worker has run yet",
			found.Unsealed, open[0].At.UTC().Format(time.RFC3339))}
	}
	return err
}
