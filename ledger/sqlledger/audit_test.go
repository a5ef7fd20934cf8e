package sqlledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// sealedJournal is a ledger whose journal is sealed, with a way to change rows
// behind its back.
type sealedJournal struct {
	*testing.T
	store *sqlledger.Store
	l     *verbs.Ledger
}

func newSealed(t *testing.T, store *sqlledger.Store) sealedJournal {
	t.Helper()
	s := sealedJournal{T: t, store: store}
	s.l = s.ledgerWithKey("a key of thirty-two bytes or more")
	require.NoError(t, s.l.EnsureSweep(t.Context(), "sim"))
	return s
}

func (s sealedJournal) execBehind(statement string) {
	s.Helper()
	require.NoError(s, sqlledger.ExecBehind(s.Context(), s.store, statement))
}

// eventNumbers returns the numbers of the events after one.
func (s sealedJournal) eventNumbers(after int64) (list []int64) {
	s.Helper()
	require.NoError(s, s.store.Read(s.Context(), func(r ledger.Reader) error {
		events, err := r.Journal(after, 1<<40, 100)
		for _, e := range events {
			list = append(list, e.Seq)
		}
		return err
	}))
	return list
}

// ledgerWithKey returns a ledger over the same rows with another key.
func (s sealedJournal) ledgerWithKey(key string) *verbs.Ledger {
	return verbs.New(s.store, &ids.UUID{}, ledger.Config{Seals: ledger.NewSealKey([]byte(key))})
}

// addEvents adds n events.
func (s sealedJournal) addEvents(n int) {
	s.Helper()
	var c ledger.Change
	for i := range n {
		e := ledger.Event{At: start.Add(time.Duration(i) * time.Microsecond), Type: "test.told",
			Subject: fmt.Sprint("x_", i), Message: "ü and 'more'"}
		if i%3 == 0 {
			e.OrganizationID, e.Decision = "org_1", []byte(`{"kind":"test"}`)
		}
		c.Events = append(c.Events, e)
	}
	require.NoError(s, saveChange(s.T, s.store, c))
}

// sealAll runs the task that seals once everything can be sealed: transactions of
// other tests may hold the newest events back.
func (s sealedJournal) sealAll() (last ledger.Seal) {
	s.Helper()
	var end int64
	require.Eventually(s, func() (settled bool) {
		require.NoError(s, s.store.Read(s.Context(), func(r ledger.Reader) (err error) {
			if last, err = r.LastSeal(); err != nil {
				return err
			}
			if end, err = r.JournalEnd(); err != nil {
				return err
			}
			rest, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{After: last.Last}, 500)
			settled = last.Last == end || len(rest) > 0 && rest[len(rest)-1].Seq == end
			return err
		}))
		return settled
	}, time.Minute, time.Millisecond)
	task := s.sealTask()
	claimed, err := s.l.ClaimTask(s.Context(), task.ID, task.Attempt, time.Minute)
	require.NoError(s, err)
	_, err = s.l.SealJournal(s.Context(), ledger.Guard{TaskID: claimed.ID, Fence: claimed.Fence})
	require.NoError(s, err)
	require.NoError(s, s.store.Read(s.Context(), func(r ledger.Reader) (err error) {
		last, err = r.LastSeal()
		return err
	}))
	require.Equal(s, end, last.Last)
	return last
}

// sealTask returns the row of the task that seals.
func (s sealedJournal) sealTask() (task ledger.Task) {
	s.Helper()
	var id string
	list, err := s.l.Dispatch(s.Context(), 100, -time.Hour)
	require.NoError(s, err)
	for _, t := range list {
		if t.Kind == ledger.TaskSeal {
			id = t.ID
		}
	}
	if id == "" { // it sleeps; a claim does not mind
		s.execBehind("UPDATE tasks SET run_at = 1, dispatch_after = 0 WHERE key = 'seals'")
		return s.sealTask()
	}
	require.NoError(s, s.store.Read(s.Context(), func(r ledger.Reader) (err error) {
		task, err = r.Task(id)
		return err
	}))
	return task
}

// verifyAll reads the whole journal.
func (s sealedJournal) verifyAll(l *verbs.Ledger, known string) ledger.Audit {
	s.Helper()
	anchor, err := ledger.ParseAnchor(known)
	require.NoError(s, err)
	req, events, seals := ledger.AuditRequest{Known: anchor, Limit: 2}, 0, 0
	for {
		part, err := l.VerifyJournal(s.Context(), ledger.SystemActor("test"), req)
		require.NoError(s, err)
		events, seals = events+part.Events, seals+part.Seals
		if part.Finding != nil || !part.More {
			part.Events, part.Seals = events, seals
			return part
		}
		if req.After, err = ledger.ParseAnchor(part.Last.Anchor()); err != nil {
			s.Fatal(err)
		}
	}
}

// tampering lists what somebody can do who may write to the database, and what is
// then found. {1}, {4} and {5} stand for events of the second seal, {gap} for a
// number between the latter two that a failed transaction drew.
var tampering = map[string]struct {
	statements string
	kind       string
	event      string // empty: it is the seal
}{
	"a message is changed":  {"UPDATE events SET message = 'nothing' WHERE seq = {4}", ledger.AuditChanged, "{4}"},
	"a time is changed":     {"UPDATE events SET at = at + 1 WHERE seq = {5}", ledger.AuditChanged, "{5}"},
	"a decision is changed": {"UPDATE events SET decision = '{}' WHERE seq = {4}", ledger.AuditChanged, "{4}"},
	"text moves between fields": {"UPDATE events SET actor = type, type = '' WHERE seq = {5}", ledger.AuditChanged,
		"{5}"},
	"one is removed": {"DELETE FROM events WHERE seq = {4}", ledger.AuditMissing, "{4}"},
	"two are swapped": {"UPDATE events SET seq = -1 WHERE seq = {4}; UPDATE events SET seq = {4} WHERE seq = {5}; " +
		"UPDATE events SET seq = {5} WHERE seq = -1", ledger.AuditReordered, "{4}"},
	"one is put between": {"INSERT INTO events (seq, organization_id, at, type, subject, pool_id, actor, via, " +
		"reason, message) " +
		"VALUES ({gap}, '', 1, 'a', 'b', '', '', '', '', '')", ledger.AuditInserted, "{gap}"},
	"the tail is cut off": {"DELETE FROM events WHERE seq >= {4}", ledger.AuditMissing, "{4}"},
	"a seal is changed": {"UPDATE journal_seals SET sealed_at = sealed_at + 1 WHERE number = 2",
		ledger.AuditSealChanged, ""},
	"a seal is removed": {"DELETE FROM journal_seals WHERE number = 2", ledger.AuditSealMissing, ""},
	"events and seals are removed": {"DELETE FROM events WHERE seq >= {1}; DELETE FROM journal_seals WHERE number >= 2",
		ledger.AuditAnchor, ""},
}

// exerciseAudit runs on a store of each database.
func exerciseAudit(t *testing.T, open func(t *testing.T) sealedJournal) {
	t.Run("what nobody touched holds", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		require.Zero(t, s.verifyAll(s.l, "").Newest, "nothing is sealed yet")
		for range 5 {
			s.addEvents(7)
			s.sealAll()
		}
		anchor := s.sealAll().Anchor()
		s.addEvents(2)
		got := s.verifyAll(s.l, anchor)
		require.Nil(t, got.Finding)
		require.Equal(t, 35, got.Events)
		require.Equal(t, 5, got.Seals, "nothing new, no new seal")
		require.Equal(t, anchor, got.Last.Anchor())
		require.Eventually(t, func() bool { return s.verifyAll(s.l, anchor).Unsealed == 2 }, time.Minute,
			time.Millisecond)
		other := s.verifyAll(s.ledgerWithKey("another key of thirty-two bytes!"), "")
		require.Equal(t, ledger.AuditOtherKey, other.Finding.Kind)
		_, err := s.l.VerifyJournal(t.Context(), ledger.Actor{OrganizationID: "org_1", Role: ledger.Admin},
			ledger.AuditRequest{})
		require.ErrorIs(t, err, ledger.ErrDenied)
	})
	for name, tc := range tampering {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.addEvents(3)
			first := s.sealAll()
			s.addEvents(5)
			gap := s.eventNumbers(first.Last)[4]
			s.execBehind(fmt.Sprintf("DELETE FROM events WHERE seq = %d", gap))
			s.addEvents(3)
			second := s.sealAll()
			if name == "a seal is removed" {
				s.addEvents(1)
				s.sealAll()
			}
			list := s.eventNumbers(first.Last)
			named := strings.NewReplacer("{1}", fmt.Sprint(list[0]), "{4}", fmt.Sprint(list[3]), "{5}",
				fmt.Sprint(list[4]), "{gap}", fmt.Sprint(gap))
			for _, statement := range strings.Split(tc.statements, ";") {
				s.execBehind(named.Replace(statement))
			}
			got := s.verifyAll(s.l, second.Anchor()).Finding
			require.NotNil(t, got)
			require.Equal(t, tc.kind, got.Kind, got.What)
			if tc.event != "" {
				require.Equal(t, named.Replace(tc.event), fmt.Sprint(got.Event))
			}
			require.Equal(t, int64(2), got.Seal)
		})
	}
	t.Run("an older copy is restored and goes on", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.addEvents(3)
		s.sealAll()
		s.addEvents(4)
		kept := s.sealAll()
		s.execBehind("DELETE FROM journal_seals WHERE number = 2")
		s.execBehind(fmt.Sprintf("DELETE FROM events WHERE seq >= %d", kept.First))
		s.addEvents(4)
		s.sealAll()
		require.Nil(t, s.verifyAll(s.l, "").Finding, "by itself it is a journal like any other")
		require.Equal(t, ledger.AuditAnchor, s.verifyAll(s.l, kept.Anchor()).Finding.Kind)
	})
}

func TestAuditSQLite(t *testing.T) {
	t.Parallel()
	exerciseAudit(t, func(t *testing.T) sealedJournal {
		t.Helper()
		return newSealed(t, openSQLite(t, inFile(t)))
	})
}
