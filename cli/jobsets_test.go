package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// setServer answers changes of sets of jobs as a test wants: a real server is done with them at once.
type setServer struct {
	answers []contract.JobsChanged
	sets    []contract.JobSet
	keys    []string
}

func (s *setServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var set contract.JobSet
	_ = json.NewDecoder(r.Body).Decode(&set)
	s.sets, s.keys = append(s.sets, set), append(s.keys, r.Header.Get(contract.HeaderIdempotencyKey))
	if len(s.answers) == 0 {
		w.Header().Set("Content-Type", contract.ProblemContentType)
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(contract.Problem{Status: http.StatusConflict, Code: contract.CodeStateConflict})
		return
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	_ = json.NewEncoder(w).Encode(answer)
}

func newSetServer(t *testing.T, answers ...contract.JobsChanged) (*town, *setServer) {
	t.Helper()
	s := &setServer{answers: answers}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	w := newTown(t)
	w.env["FOREWARM_API"] = listening.URL
	return w, s
}

// A set that one request cannot finish is gone on with, and a person at a terminal sees how far it is.
func TestALargeSetIsGoneOnWith(t *testing.T) {
	t.Parallel()
	w, s := newSetServer(t, contract.JobsChanged{Changed: 2000, Unchanged: 7, NextCursor: "abc"},
		contract.JobsChanged{Changed: 100})
	w.terminal = true
	out, errs, code := w.runCommand("jobs", "cancel", "arr_1", "--idempotency-key", "mine")
	require.Zero(t, code, errs)
	require.Equal(t, []contract.JobSet{{ArrayID: "arr_1"}, {ArrayID: "arr_1", Cursor: "abc"}}, s.sets)
	require.Equal(t, []string{"mine", "mine.2"}, s.keys)
	require.Equal(t, "JOBS OF  CHANGED  UNCHANGED  REFUSED\narr_1       2100          7        0\n", out)
	require.Equal(t, "\r\x1b[K◐ cancel: 2000 jobs so far\r\x1b[K", errs)
}

// What was done before a failure is shown beside it, and so is each job that is refused.
func TestASetThatIsNotWhollyChanged(t *testing.T) {
	t.Parallel()
	w, _ := newSetServer(t, contract.JobsChanged{Changed: 2000, NextCursor: "abc"})
	out, errs, code := w.runCommand("jobs", "hold", "arr_1")
	require.Equal(t, exit.Conflict, code, errs)
	require.Equal(t, "JOBS OF  CHANGED  UNCHANGED  REFUSED\narr_1       2000          0        0\n", out)

	w, _ = newSetServer(t, contract.JobsChanged{Refused: 2, Refusals: []contract.JobRefusal{{ID: "job_1", Message: "a"},
		{ID: "job_2", Message: "b"}}})
	_, errs, code = w.runCommand("jobs", "requeue", "arr_1")
	require.Equal(t, exit.Conflict, code)
	require.Equal(t, "job_1: a\njob_2: b\nError: 2 jobs could not be changed\nNext:  forewarm jobs list --array arr_1\n",
		errs)
}

// All of one's own jobs are cancelled only by who says so.
func TestAQuestionBeforeAllOfOnesJobs(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.mustRun("run", "-d", "--hold", "--pool", "lab", "--array", "0-1", "--", "true")
	w.terminal = true
	w.stdin = "n\n"
	_, errs, code := w.runCommand("jobs", "cancel", "--mine")
	require.Equal(t, exit.Failed, code)
	require.Contains(t, errs, "Cancel 2 jobs of yours? [y/N] ")
	require.Contains(t, errs, "Next:  forewarm jobs cancel --mine --yes")
	require.Equal(t, "2", w.mustRun("jobs", "list", "--state", "held", "--jq", "length"))
	w.stdin = "y\n"
	_, errs, code = w.runCommand("jobs", "cancel", "--mine")
	require.Zero(t, code, errs)
	require.Equal(t, "2", w.mustRun("jobs", "list", "--state", "cancelled", "--jq", "length"))
}

// Several jobs of an array are named as in Slurm, and none is changed unless each of them is there.
func TestRangesOfAnArray(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	id := w.mustRun("run", "-d", "--hold", "--pool", "lab", "--name", "dka", "--array", "0-8", "--", "true")
	w.mustRun("run", "-d", "--hold", "--pool", "lab", "--name", "one", "--", "true")
	inState := func(state string) string {
		return w.mustRun("jobs", "list", "--array", id, "--state", state, "--jq", `map(.array_index) | sort | join(",")`)
	}
	for line, says := range map[string]string{
		"dka[1-2,9]": "'dka[1-2,9]': there is no job of the index 9 in an array", "one[0-1]": "no job of the index 0",
		"nosuch[1,2]": "no job of the index 1", "dka[3-1]": "3-1: a range begins with the smaller index",
		"dka[1-]": "write indices and ranges", "dka[0-2147483647]": "an array has at most 10000 jobs",
		"dka[0-9999,1-2]": "an array has at most 10000 jobs"} {
		_, errs, code := w.runCommand("jobs", "cancel", line)
		require.Contains(t, []int{exit.NotFound, exit.Usage}, code, line)
		require.Contains(t, errs, says, line)
	}
	require.Equal(t, "0,1,2,3,4,5,6,7,8", inState("held"))
	w.mustRun("jobs", "release", "dka[0-1]", id+"_[3,5-6]")
	require.Equal(t, "2,4,7,8", inState("held"))
	w.mustRun("jobs", "hold", id+"[5,6]")
	require.Equal(t, "2,4,5,6,7,8", inState("held"))
	w.mustRun("jobs", "cancel", "dka[5-7]", "dka[6-8]")
	require.Equal(t, "5,6,7,8", inState("cancelled"))
}
