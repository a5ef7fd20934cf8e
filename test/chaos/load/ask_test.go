package load

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// newAsker has two servers that answer as they are told.
func newAsker(t *testing.T, answers ...http.HandlerFunc) *caller {
	t.Helper()
	c := &caller{journal: NewJournal(io.Discard), org: "org", chance: rand.New(rand.NewPCG(1, 1))}
	for _, answer := range answers {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		api, err := client.New(s.URL, "key", s.Client())
		require.NoError(t, err)
		c.servers = append(c.servers, api)
	}
	return c
}

// answerMade answers that an allocation was made.
func answerMade(id string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"id":%q}`, id) }
}

func answerProblem(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"code":%q,"title":"no"}`, code)
	}
}

func allocateRequest(key string) request[contract.Allocation] {
	return request[contract.Allocation]{Allocate, key,
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Allocate(ctx, contract.AllocationCreate{GPUs: 1}, client.Options{})
		}, allocationID}
}

func TestARequestIsSentUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	c := newAsker(t, answerProblem(http.StatusServiceUnavailable, contract.CodeUnavailable), answerMade("alc_1"))
	for i := range 10 {
		a, ok := askUntilAnswered(t.Context(), c, allocateRequest(fmt.Sprint(i)))
		require.True(t, ok)
		require.Equal(t, "alc_1", a.ID)
	}
	require.Equal(t, map[Op]int{Allocate: 10}, c.journal.Counts())
	require.Empty(t, c.journal.Doubled())
}

// Two servers that make something each for one key are found out, since some
// requests are sent to both, and some once more.
func TestTwoEffectsOfOneKeyAreNoticed(t *testing.T) {
	t.Parallel()
	c := newAsker(t, answerMade("alc_1"), answerMade("alc_2"))
	for i := range 50 {
		_, ok := askUntilAnswered(t.Context(), c, allocateRequest(fmt.Sprint(i)))
		require.True(t, ok)
	}
	require.NotEmpty(t, c.journal.Doubled())
	require.Contains(t, c.journal.Doubled()[0], `"alc_1" "alc_2"`)
}

func TestARefusalIsAnAnswerAndAnOddOneIsKept(t *testing.T) {
	t.Parallel()
	c := newAsker(t, answerProblem(http.StatusConflict, contract.CodeCapacityExhausted))
	_, ok := askUntilAnswered(t.Context(), c, allocateRequest("a"))
	require.False(t, ok)
	require.Empty(t, c.journal.Odd())
	c = newAsker(t, answerProblem(http.StatusUnauthorized, contract.CodeUnauthenticated))
	_, ok = askUntilAnswered(t.Context(), c, allocateRequest("b"))
	require.False(t, ok)
	require.Equal(t, []string{"allocate was answered 401 unauthenticated: no"}, c.journal.Odd())
	require.Equal(t, 1, c.journal.Operations())
}

func TestTheJournalIsOnDisk(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	j := NewJournal(&out)
	j.recordEffect(Entry{Op: Claim, Organization: "org", ID: "alc_1", Devices: []string{"b", "a"}})
	require.Contains(t, out.String(), `"op":"claim","organization":"org","id":"alc_1","devices":["a","b"]}`+"\n")
	require.Len(t, j.Entries(), 1)
	require.NoError(t, j.Err())
}
