package sqlledger_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// sealMemory is what a process remembers beside the database.
type sealMemory struct {
	mu   sync.Mutex
	mark ledger.SealMark
	at   string
}

func (n *sealMemory) Load() (ledger.SealMark, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mark, nil
}

func (n *sealMemory) Save(m ledger.SealMark) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mark = m
}

func (n *sealMemory) Where() string { return n.at }

// ledgerWithMemory returns the ledger of a process of the same installation with a
// memory of its own.
func (s sealedJournal) ledgerWithMemory(at string) *verbs.Ledger {
	return verbs.New(s.store, &ids.UUID{},
		ledger.Config{Seals: ledger.NewSealKey([]byte("a key of thirty-two bytes or more")),
			SealMemory: &sealMemory{at: at}})
}

// trySeal runs the task that seals once.
func (s sealedJournal) trySeal() error {
	s.Helper()
	task := s.sealTask()
	claimed, err := s.l.ClaimTask(s.Context(), task.ID, task.Attempt, time.Minute)
	require.NoError(s, err)
	g := ledger.Guard{TaskID: claimed.ID, Fence: claimed.Fence}
	_, err = s.l.SealJournal(s.Context(), g)
	if err != nil {
		require.NoError(s, s.l.RetryTask(s.Context(), g, 0, "test"))
	}
	return err
}

// awaitAcceptance waits until the acceptance can be read: transactions of other
// tests may hold it back.
func (s sealedJournal) awaitAcceptance(l *verbs.Ledger) {
	s.Helper()
	require.Eventually(s, func() bool { return l.WatchSeals(s.Context()) == nil }, time.Minute, time.Millisecond)
}

// countEvents counts events of a type about the journal.
func (s sealedJournal) countEvents(kind string) (n int) {
	s.Helper()
	require.NoError(s, s.store.Read(s.Context(), func(r ledger.Reader) error {
		found, err := r.Journal(0, 1<<40, 500)
		for _, e := range found {
			if e.Type == kind {
				n++
			}
		}
		return err
	}))
	return n
}

// removed lists ways to hide that the journal was changed.
var removed = map[string][]string{
	"all seals": {"UPDATE events SET message = 'x' WHERE seq = 2", "DELETE FROM journal_seals"},
	"the last seal with its events": {"DELETE FROM journal_seals WHERE number = 2",
		"DELETE FROM events WHERE subject = 'x_0' AND seq > 5"},
	"everything": {"DELETE FROM journal_seals", "DELETE FROM events"},
}

// exerciseMarks: whoever verifies, or would seal anew, misses the seals that
// somebody has seen, until an operator accepts the journal as it is.
func exerciseMarks(t *testing.T, open func(t *testing.T) sealedJournal) {
	var behind *ledger.JournalBehindError
	for name, statements := range removed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.l = s.ledgerWithMemory("worker")
			server, other := s.ledgerWithMemory("server"), s.ledgerWithMemory("other worker")
			s.addEvents(6)
			s.sealAll()
			s.addEvents(3)
			s.sealAll()
			require.Nil(t, s.verifyAll(server, "").Finding)
			require.NoError(t, other.WatchSeals(t.Context()))
			for _, statement := range statements {
				s.execBehind(statement)
			}
			require.ErrorAs(t, s.trySeal(), &behind, "nothing is sealed anew")
			require.Contains(t, behind.What, "seal 2:")
			require.Contains(t, behind.What, "worker")
			require.ErrorAs(t, other.WatchSeals(t.Context()), &behind)
			require.ErrorAs(t, server.WatchSeals(t.Context()), &behind)
			require.NotZero(t, s.countEvents("journal.behind"))
			require.Equal(t, ledger.AuditBehind, s.verifyAll(server, "").Finding.Kind)
			require.Eventually(t,
				func() bool {
					return s.verifyAll(s.ledgerWithKey("a key of thirty-two bytes or more"), "").Finding != nil
				},
				time.Minute, time.Millisecond,
				"one that remembers nothing hears of it from the journal")

			require.ErrorIs(t, server.AcceptJournal(t.Context(),
				ledger.Actor{OrganizationID: "org_1", Role: ledger.Admin}), ledger.ErrDenied)
			require.NoError(t, server.AcceptJournal(t.Context(), ledger.SystemActor("test")))
			s.awaitAcceptance(s.l)
			require.NoError(t, s.trySeal())
			require.NoError(t, other.WatchSeals(t.Context()))
			require.NoError(t, server.WatchSeals(t.Context()))
			require.Nil(t, s.verifyAll(server, "").Finding)
		})
	}
	t.Run("an acceptance is good once", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.l = s.ledgerWithMemory("worker")
		s.addEvents(3)
		s.sealAll()
		s.execBehind("DELETE FROM journal_seals")
		require.NoError(t, s.ledgerWithKey("another key of thirty-two bytes!").AcceptJournal(t.Context(),
			ledger.SystemActor("test")))
		require.ErrorAs(t, s.trySeal(), &behind, "who has not the key cannot accept")
		require.NoError(t, s.ledgerWithKey("a key of thirty-two bytes or more").AcceptJournal(t.Context(),
			ledger.SystemActor("test")))
		s.awaitAcceptance(s.l)
		require.NoError(t, s.trySeal())
		s.execBehind("DELETE FROM journal_seals")
		require.ErrorAs(t, s.trySeal(), &behind, "an old one says nothing of what is missing now")
	})
	t.Run("old events without any seal", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.addEvents(3) // the clock of the tests is long past their times
		require.Eventually(t, func() bool {
			found := s.verifyAll(s.l, "").Finding
			return found != nil && found.Kind == ledger.AuditUnsealed
		}, time.Minute, time.Millisecond)
	})
}

func TestMarksSQLite(t *testing.T) {
	t.Parallel()
	exerciseMarks(t, func(t *testing.T) sealedJournal {
		t.Helper()
		store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: inFile(t),
			Clock: clock.System{}}) // what is accepted is accepted at a time
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		require.NoError(t, store.Migrate(t.Context()))
		return newSealed(t, store)
	})
}
