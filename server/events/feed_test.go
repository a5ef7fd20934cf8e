package events_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/events"
)

// watched is a store that counts how often it is read.
type watched struct {
	ledger.Store
	reads atomic.Int64
}

func (w *watched) Read(ctx context.Context, fn func(ledger.Reader) error) error {
	w.reads.Add(1)
	return w.Store.Read(ctx, fn)
}

// journal is one that grows by an event at a time, and a feed of it.
type journal struct {
	*events.Feed
	store  *watched
	ledger *verbs.Ledger
}

func openJournal(t *testing.T) *journal {
	t.Helper()
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://:memory:", Clock: clock.System{}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	counted := &watched{Store: store}
	return &journal{Feed: events.NewFeed(counted, slog.New(slog.DiscardHandler)), store: counted,
		ledger: verbs.New(store, &ids.Sequence{}, ledger.Config{})}
}

func (j *journal) grow(ctx context.Context, t require.TestingT, door string) {
	require.NoError(t, j.ledger.RecordFailedLogins(ctx, []ledger.FailedLogin{{Door: door, Count: 1}}))
}

func isClosed(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func TestWithoutFollowersNothingIsRead(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	for range 3 {
		j.grow(t.Context(), t, "api")
		require.NoError(t, j.Step(t.Context()))
	}
	require.Zero(t, j.store.reads.Load())
	first := j.Changed()
	require.NoError(t, j.Step(t.Context()))
	require.True(t, isClosed(first), "it came after events that nobody looked for")
	reads := j.store.reads.Load()
	require.LessOrEqual(t, reads, int64(2), "where the journal ends is found at once")
	j.grow(t.Context(), t, "api")
	require.NoError(t, j.Step(t.Context()))
	require.Equal(t, reads, j.store.reads.Load(), "who was woken has gone")
	second := j.Changed()
	require.NoError(t, j.Step(t.Context()))
	require.True(t, isClosed(second))
	quiet := j.Changed()
	require.NoError(t, j.Step(t.Context()))
	require.False(t, isClosed(quiet))
}

// However commits, looks and followers take turns: who follows is woken by the first
// look after an event that it may not have read.
func TestFollowersAreWoken(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	committed := 0
	rapid.Check(t, func(rt *rapid.T) {
		followers := map[<-chan struct{}]int{} // what was committed when they began
		for i, act := range rapid.SliceOfN(rapid.IntRange(0, 2), 1, 20).Draw(rt, "acts") {
			switch act {
			case 0:
				j.grow(t.Context(), rt, strconv.Itoa(i))
				committed++
			case 1:
				if changed := j.Changed(); followers[changed] == 0 {
					followers[changed] = committed
				}
			case 2:
				require.NoError(rt, j.Step(t.Context()))
				for changed, seen := range followers {
					if committed > seen {
						require.True(rt, isClosed(changed))
						delete(followers, changed)
					}
				}
			}
		}
	})
}

func TestRecentEventsAreTheNewestOfTheScope(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	for _, door := range []string{"one", "two", "three"} {
		j.grow(t.Context(), t, door)
	}
	got, err := j.Recent(t.Context(), ledger.Scope{All: true}, 2)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, []string{"three", "two"}, []string{got[0].Reason, got[1].Reason})
	got, err = j.Recent(t.Context(), ledger.Scope{OrganizationID: "org_other"}, 2)
	require.NoError(t, err)
	require.Empty(t, got)
}
