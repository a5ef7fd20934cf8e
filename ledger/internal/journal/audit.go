package journal

import (
	"context"
	"crypto/hmac"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// auditMost bounds how many seals one answer covers: some 20,000 events.
const auditMost = 20

// sealLate is how old events are that should have been sealed, where there is no
// seal at all.
const sealLate = time.Minute

// VerifyJournal compares a part of the journal with its seals, up to the first
// thing that is not as it was. Only an operator may: it reads every tenant's events.
func (l Journal) VerifyJournal(ctx context.Context, actor ledger.Actor, req ledger.AuditRequest) (ledger.Audit, error) {
	if actor.Role != ledger.Operator {
		return ledger.Audit{}, ledger.ErrDenied
	}
	if l.Config.Seals == (ledger.SealKey{}) {
		return ledger.Audit{}, &ledger.StateError{Subject: "the journal", State: "without a key for seals",
			Asked: "be verified"}
	}
	if req.Limit <= 0 || req.Limit > auditMost {
		req.Limit = auditMost
	}
	var found ledger.Audit
	var now time.Time
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		now = r.Now()
		found, err = audit{Reader: r, key: l.Config.Seals, req: req}.runAudit()
		if err != nil || found.More || found.Finding != nil && found.Finding.Kind != ledger.AuditUnsealed {
			return err
		}
		missed, err := missedSeals(l.Engine, r)
		if missed != nil {
			found.Finding = missed
		}
		return err
	})
	if err != nil {
		return ledger.Audit{}, fmt.Errorf("verifying the journal: %w", err)
	}
	if found.Finding == nil && !found.More {
		rememberSeal(l.Engine, found.Last, now)
	}
	return found, nil
}

// missedSeals tells of seals that were seen, and are not in a chain that holds.
func missedSeals(l *txn.Engine, r ledger.Reader) (*ledger.AuditFinding, error) {
	gap, err := Journal{Engine: l}.JournalGap(r)
	if err != nil || gap == nil {
		return nil, err
	}
	return &ledger.AuditFinding{Kind: ledger.AuditBehind, What: gap.What}, nil
}

// audit is one part being compared.
type audit struct {
	ledger.Reader
	key ledger.SealKey
	req ledger.AuditRequest
}

func (a audit) runAudit() (found ledger.Audit, err error) {
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
		found.Finding = &ledger.AuditFinding{Kind: ledger.AuditAnchor, Seal: a.req.Known.Number, What: fmt.Sprintf(
			"the chain ends at seal %d, before the one that was kept: the chain was truncated, or an older copy restored",
			found.Last.Number)}
		return found, nil
	}
	return found, a.checkUnsealed(&found)
}

// lastChecked finds the seal that was checked last.
func (a audit) lastChecked() (ledger.Seal, *ledger.AuditFinding, error) {
	if a.req.After == (ledger.Anchor{}) {
		return ledger.Seal{}, nil, nil
	}
	list, err := a.Seals(a.req.After.Number-1, 1)
	if err != nil {
		return ledger.Seal{}, nil, err
	}
	if len(list) == 0 || !a.req.After.IsOf(list[0]) {
		return ledger.Seal{}, &ledger.AuditFinding{Kind: ledger.AuditSealChanged, Seal: a.req.After.Number,
			What: "is not the one that was there a moment ago"}, nil
	}
	return list[0], nil, nil
}

// checkSeal compares one seal with the one before and with its events.
func (a audit) checkSeal(before, s ledger.Seal) (*ledger.AuditFinding, error) {
	finding := func(kind, what string) (*ledger.AuditFinding, error) {
		return &ledger.AuditFinding{Kind: kind, Seal: s.Number, What: what}, nil
	}
	switch {
	case s.Number != before.Number+1:
		return &ledger.AuditFinding{Kind: ledger.AuditSealMissing, Seal: before.Number + 1, What: "is missing"}, nil
	case s.KeyID != a.key.ID:
		return finding(ledger.AuditOtherKey, fmt.Sprintf(
			"was made with key %s, and this server has %s: servers and workers need the same FOREWARM_PEPPER", s.KeyID,
			a.key.ID))
	case !hmac.Equal(s.MAC, a.key.SealMAC(before, s)):
		return finding(ledger.AuditSealChanged, "is not as it was made")
	case a.req.Known.Number == s.Number && !a.req.Known.IsOf(s):
		return finding(ledger.AuditAnchor,
			"is not the one that was kept: the journal was rewritten, or an older copy restored")
	}
	sealed, err := s.ReadTags(before.Last)
	if err != nil {
		return finding(ledger.AuditSealChanged, err.Error())
	}
	events, err := a.Journal(before.Last, s.Last, len(sealed)+1)
	if err != nil {
		return nil, err
	}
	return a.compareEvents(s, sealed, events)
}

// compareEvents finds the first event that is not as it was sealed.
func (a audit) compareEvents(s ledger.Seal, sealed []ledger.Tagged, events []ledger.Event) (
	*ledger.AuditFinding, error) {
	places := make(map[ledger.Tag]int64, len(sealed))
	for _, t := range sealed {
		places[t.Tag] = t.Seq
	}
	finding := func(kind string, event int64, format string, args ...any) (*ledger.AuditFinding, error) {
		return &ledger.AuditFinding{Kind: kind, Seal: s.Number, Event: event, What: fmt.Sprintf(format, args...)}, nil
	}
	for i, want := range sealed {
		if i >= len(events) || events[i].Seq > want.Seq {
			return finding(ledger.AuditMissing, want.Seq, "was removed")
		}
		got, err := a.key.TagEvent(s.Format, events[i])
		if err != nil {
			return nil, err
		}
		place, known := places[got]
		switch {
		case events[i].Seq < want.Seq:
			return finding(ledger.AuditInserted, events[i].Seq, "was not there when its stretch was sealed")
		case got == want.Tag:
		case known:
			return finding(ledger.AuditReordered, want.Seq, "is what event %d was", place)
		default:
			return finding(ledger.AuditChanged, want.Seq, "does not say what it said")
		}
	}
	if len(events) > len(sealed) {
		return finding(ledger.AuditInserted, events[len(sealed)].Seq, "was not there when its stretch was sealed")
	}
	return nil, nil //nolint:nilnil // no finding, no failure
}

// checkUnsealed looks at what no seal covers yet.
func (a audit) checkUnsealed(found *ledger.Audit) error {
	open, err := a.Journal(found.Last.Last, 0, 1)
	if err != nil || len(open) == 0 {
		return err
	}
	end, err := a.JournalEnd()
	found.Unsealed, found.UnsealedSince = end-found.Last.Last, open[0].At
	if found.Last.Number == 0 && a.Now().Sub(open[0].At) > sealLate {
		found.Finding = &ledger.AuditFinding{Kind: ledger.AuditUnsealed, What: fmt.Sprintf(
			"the journal has %d events, the oldest of %s, and no seal: the seals were removed, or no worker has "+
				"run yet",
			found.Unsealed, open[0].At.UTC().Format(time.RFC3339))}
	}
	return err
}
