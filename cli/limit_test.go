package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// newLongList puts a server with many jobs in front of a town's commands, and counts what it is asked. Each third
// request has to wait.
func newLongList(t *testing.T, jobs int) (w *town, asked *[]string) {
	t.Helper()
	asked = new([]string)
	busy := false
	listening := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if busy = !busy && len(*asked)%3 == 2; busy {
			out.Header().Set("Retry-After", "1")
			out.WriteHeader(http.StatusTooManyRequests)
			_, _ = out.Write([]byte(`{"code":"` + contract.CodeRateLimited + `"}`))
			return
		}
		*asked = append(*asked, r.URL.RawQuery)
		size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		var page contract.List[contract.Job]
		for i := from; i < min(from+size, jobs); i++ {
			x := newJob(contract.JobCompleted, 1)
			x.ID, x.Name = fmt.Sprintf("job_%d", i), strings.Repeat("n", 1+i/1000)
			page.Items = append(page.Items, x)
		}
		if from+size < jobs {
			page.NextCursor = strconv.Itoa(from + size)
		}
		_ = json.NewEncoder(out).Encode(page)
	}))
	t.Cleanup(listening.Close)
	w = newTown(t)
	w.onPause = func() {}
	w.env["FOREWARM_API"] = listening.URL
	return w, asked
}

// Of a long list so many are asked for as are wanted, in pages as large as there are, and that one has to be patient
// is said once.
func TestLongLists(t *testing.T) {
	t.Parallel()
	w, asked := newLongList(t, 2100)
	out, errs, code := w.runCommand("jobs", "list", "--all", "--limit", "3", "-o", "name")
	require.Zero(t, code, errs)
	require.Equal(t, "job_0\njob_1\njob_2\n", out)
	require.Equal(t, []string{"all=true&limit=3"}, *asked)

	*asked = nil
	out, errs, code = w.runCommand("jobs", "list", "--all", "--no-headers")
	require.Zero(t, code, errs)
	require.Len(t, *asked, 11)
	require.Equal(t, 2100, strings.Count(out, "\n"))
	require.Equal(t, 1, strings.Count(errs, "Too many requests"), errs)
	_, _, code = w.runCommand("jobs", "list", "--all", "--limit", "400")
	require.Zero(t, code)
	require.Len(t, *asked, 13)

	table := w.mustRun("jobs", "list", "--all")
	require.Equal(t, 1, strings.Count(table, "WHERE OR WHY"))
	columns := map[int]bool{}
	for line := range strings.Lines(table[strings.Index(table, "job_2000"):]) {
		columns[strings.Index(line, "completed")] = true
	}
	require.Len(t, columns, 1, "parts have the columns of those before")
	require.Len(t, strings.Split(w.mustRun("jobs", "list", "--all", "--jq", ".[].id"), "\n"), 2100)

	_, errs, code = w.runCommand("jobs", "list", "--limit", "-1")
	require.Equal(t, exit.Usage, code, errs)
}

// closedEarly takes so many bytes, as head does.
type closedEarly int

func (c *closedEarly) Write(p []byte) (int, error) {
	if *c -= closedEarly(len(p)); *c < 0 {
		return 0, errors.New("nobody reads")
	}
	return len(p), nil
}

// Who has read enough has no more fetched.
func TestAListThatNobodyReadsEnds(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"table", "jsonl", "name"} {
		w, asked := newLongList(t, 5000)
		root := w.newRoot()
		root.SetArgs([]string{"jobs", "list", "--all", "-o", form})
		root.SetOut(new(closedEarly))
		require.Error(t, root.ExecuteContext(t.Context()))
		require.LessOrEqual(t, len(*asked), 3, form)
	}
}

// Each list of the real server can be bounded.
func TestEveryListHasALimit(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.createTower()
	require.Equal(t, 1, strings.Count(w.mustRun("pools", "list", "--limit", "1", "-o", "name")+"\n", "\n"))
	for _, noun := range []string{"jobs", "gpus", "nodes", "pools", "allocations", "reservations", "schedules", "users",
		"keys", "orgs"} {
		w.mustRun(noun, "list", "--limit", "1")
	}
	w.mustRun("queue", "--limit", "1")
}
