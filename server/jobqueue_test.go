package server_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// A queue comes in pages, and lists have the beginning of a long command: what is large is stored once, and told to
// whoever asks for that job.
func TestAQueueOfLargeCommandsIsTold(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	long := strings.Repeat("é", 30_000)
	made := ask[contract.JobsSubmitted](f.world, "root", http.MethodPost, "/v1/jobs", `{"pool":"`+f.pool+`","gpus":1,
		"not_before":"2099-01-01T00:00:00Z","command":["sh","-c","`+long+`","last"],"array":{"first":0,"last":6}}`,
		"Idempotency-Key", "many")
	require.Len(t, made.Jobs, 7)
	seen := map[string]bool{}
	cursor, pages := "", 0
	for {
		page := ask[contract.List[contract.Job]](f.world, "root", http.MethodGet,
			"/v1/queue?limit=3&pool="+f.pool+"&cursor="+cursor, "")
		for _, j := range append(page.Items, made.Jobs...) {
			require.True(t, j.CommandCut)
			require.Less(t, len(strings.Join(j.Command, " ")), 300)
			require.True(t, utf8.ValidString(j.Command[2]))
		}
		for _, j := range page.Items {
			require.False(t, seen[j.ID])
			seen[j.ID] = true
		}
		if pages++; page.NextCursor == "" {
			break
		}
		cursor = page.NextCursor
	}
	require.Equal(t, 3, pages)
	require.Len(t, seen, 7)
	whole := ask[contract.Job](f.world, "root", http.MethodGet, "/v1/jobs/"+made.Jobs[0].ID, "")
	require.False(t, whole.CommandCut)
	require.Equal(t, []string{"sh", "-c", long, "last"}, whole.Command)
}
