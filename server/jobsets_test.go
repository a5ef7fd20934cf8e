package server_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// changeSet sends a change of a set of jobs.
func (f *jobFleet) changeSet(verb, body, key string) contract.JobsChanged {
	f.t.Helper()
	return ask[contract.JobsChanged](f.world, "root", http.MethodPost, "/v1/jobs/"+verb, body, "Idempotency-Key", key)
}

// changeWhole changes a whole array and returns the sum of the answers: a slow server needs more than one request.
func (f *jobFleet) changeWhole(verb, array, key string) (all contract.JobsChanged) {
	f.t.Helper()
	for cursor := ""; ; cursor = all.NextCursor {
		got := f.changeSet(verb, `{"array_id":"`+array+`","cursor":"`+cursor+`"}`, key+cursor)
		got.Changed, got.Unchanged = got.Changed+all.Changed, got.Unchanged+all.Unchanged
		if all = got; all.NextCursor == "" {
			return all
		}
	}
}

// A whole array is held, released and cancelled by a verb each, whose request can be sent again.
func TestAWholeArrayIsChanged(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	n := 2*ledger.MostJobsAtOnce + 7
	array := f.submit("root", fmt.Sprintf(`{"pool":"%s","command":["true"],"array":{"last":%d}}`, f.pool, n-1))[0].ArrayID
	for _, step := range []struct {
		verb string
		then contract.JobCounts
	}{{"hold", contract.JobCounts{Held: n}}, {"release", contract.JobCounts{Pending: n}}} {
		got := f.changeWhole(step.verb, array, step.verb)
		require.Equal(t, contract.JobsChanged{Changed: n, Refusals: []contract.JobRefusal{}}, got)
		require.Equal(t, step.then, f.countJobs("array="+array))
	}
	set := `{"array_id":"` + array + `"}`
	first := f.changeSet("cancel", set, "cancel")
	f.changeWhole("cancel", array, "rest")
	require.Equal(t, contract.JobCounts{Cancelled: n}, f.countJobs("array="+array))
	require.Equal(t, contract.JobsChanged{Unchanged: n, Refusals: []contract.JobRefusal{}},
		f.changeWhole("cancel", array, "cancel-once-more"))
	require.Equal(t, first.Changed, f.changeSet("cancel", set, "cancel").Changed, "its answer stays what it was")
	require.Equal(t, contract.CodeIdempotencyKeyReused, f.refuse("root", http.MethodPost, "/v1/jobs/cancel",
		`{"mine":true}`, "Idempotency-Key", "cancel").Code)
}

// A request does a bounded number, and says how to go on.
func TestALargeArrayTakesSeveralRequests(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	array := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"array":{"last":2100}}`)[0].ArrayID
	first := f.changeSet("cancel", `{"array_id":"`+array+`"}`, "1")
	require.NotEmpty(t, first.NextCursor)
	require.LessOrEqual(t, first.Changed, 2000)
	require.Zero(t, first.Changed%ledger.MostJobsAtOnce)
	done := first.Changed
	for next := first.NextCursor; next != ""; {
		got := f.changeSet("cancel", `{"array_id":"`+array+`","cursor":"`+next+`"}`, next)
		done, next = done+got.Changed, got.NextCursor
	}
	require.Equal(t, 2101, done)
	require.Equal(t, contract.JobCounts{Cancelled: 2101}, f.countJobs("array="+array))
}

// What fails in the middle keeps what was done, and the answer says where to go on.
func TestASetOfWhichAPartFails(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	n := ledger.MostJobsAtOnce + 3
	all := f.submit("root", fmt.Sprintf(`{"pool":"%s","command":["true"],"array":{"last":%d}}`, f.pool, n-1))
	set := `{"array_id":"` + all[0].ArrayID + `"}`
	cursor := base64.RawURLEncoding.EncodeToString([]byte("job:" + all[ledger.MostJobsAtOnce-1].ID))
	f.changeSet("cancel", `{"mine":true,"states":["held"]}`, "k+"+cursor) // the key of the second part is another's
	got := f.changeSet("cancel", set, "k")
	require.Equal(t, contract.JobsChanged{Changed: ledger.MostJobsAtOnce, Refusals: []contract.JobRefusal{},
		NextCursor: cursor}, got)
	require.Equal(t, contract.JobCounts{Cancelled: ledger.MostJobsAtOnce, Pending: 3},
		f.countJobs("array="+all[0].ArrayID))
	rest := `{"array_id":"` + all[0].ArrayID + `","cursor":"` + cursor + `"}`
	require.Equal(t, 3, f.changeSet("cancel", rest, "k2").Changed)
	again := f.send("root", http.MethodPost, "/v1/jobs/cancel", rest, "Idempotency-Key", "k2")
	require.Equal(t, "true", again.Header().Get("Idempotency-Replayed"))
	require.Contains(t, again.Body.String(), `"changed":3`)
}

// All of one's own jobs in a state, in a pool, by its name, too.
func TestOnesOwnJobsAreChanged(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	body := `{"pool":"` + f.pool + `","command":["true"]}`
	waits := f.submit("root", body)[0]
	held := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"hold":true}`)[0]
	require.Equal(t, 1, f.changeSet("cancel", `{"mine":true,"states":["held"],"pool":"lab"}`, "a").Changed)
	require.Equal(t, "cancelled", f.job(held.ID).State)
	require.Equal(t, "pending", f.job(waits.ID).State)
	require.Equal(t, contract.JobsChanged{Unchanged: 1, Refusals: []contract.JobRefusal{}},
		f.changeSet("release", `{"mine":true}`, "b"), "what is over does not count")
	require.Equal(t, 1, f.changeSet("requeue", `{"mine":true}`, "c").Unchanged, "it has nothing to leave")
	require.Equal(t, 1, f.changeSet("cancel", `{"mine":true}`, "d").Changed)
}

func TestSetsOfJobsThatAreRefused(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	array := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"array":{"last":1}}`)[0].ArrayID
	f.createKey("looks", "viewer")
	f.createTenant("other")
	for _, c := range []struct{ key, body, code string }{
		{"root", `{}`, contract.CodeValidationFailed},
		{"root", `{"states":["pending"],"pool":"lab"}`, contract.CodeValidationFailed},
		{"root", `{"array_id":"` + array + `","mine":true}`, contract.CodeValidationFailed},
		{"root", `{"mine":true,"states":["completed"]}`, contract.CodeValidationFailed},
		{"root", `{"mine":true,"pool":"nosuch"}`, contract.CodeValidationFailed},
		{"root", `{"mine":true,"cursor":"abc"}`, contract.CodeInvalidCursor},
		{"root", `{"array_id":"arr_404"}`, contract.CodeNotFound},
		{"other", `{"array_id":"` + array + `"}`, contract.CodeNotFound},
		{"looks", `{"array_id":"` + array + `"}`, contract.CodePermissionDenied},
		{"looks", `{"mine":true}`, contract.CodePermissionDenied},
	} {
		for _, verb := range []string{"cancel", "hold", "release", "requeue", "shelve"} {
			require.Equal(t, c.code, f.refuse(c.key, http.MethodPost, "/v1/jobs/"+verb, c.body).Code, "%s %s", verb, c.body)
		}
	}
	require.Equal(t, contract.JobCounts{Pending: 2}, f.countJobs("array="+array))
}

// What a job that waits asks for can be changed, one by its version and many as they are; nothing else can.
func TestJobsAreEdited(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	all := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"array":{"last":4},"checkpoint":{"signal":"USR1"}}`)
	one := f.job(all[0].ID)
	got := ask[contract.Job](f.world, "root", http.MethodPatch, "/v1/jobs/"+one.ID,
		`{"max_runtime_seconds":7200,"not_before":"2026-12-24T00:00:00Z","preemptible":true}`,
		"If-Match", fmt.Sprintf(`"%d"`, one.Version))
	require.Equal(t, f.job(one.ID).Version, got.Version)
	require.Equal(t, []any{int64(7200), time.December, true, one.Version + 1},
		[]any{got.MaxRuntimeSeconds, got.NotBefore.Month(), got.Preemptible, got.Version})
	require.Equal(t, contract.CodeETagMismatch, f.refuse("root", http.MethodPatch, "/v1/jobs/"+one.ID,
		`{"preemptible":false}`, "If-Match", fmt.Sprintf(`"%d"`, one.Version)).Code)
	for body, field := range map[string]string{`{}`: "/name", `{"max_runtime_seconds":2592000}`: "/max_runtime_seconds",
		`{"max_runtime_seconds":30}`: "/checkpoint/before_seconds", `{"name":"other"}`: "/name",
		`{"not_before":"9999-12-31T23:59:59-23:59"}`: "/not_before",
		`{"not_before":"0000-01-01T00:00:00+23:59"}`: "/not_before"} {
		refused := f.refuse("root", http.MethodPatch, "/v1/jobs/"+one.ID, body, "If-Match", fmt.Sprintf(`"%d"`, got.Version))
		require.Equal(t, field, refused.Errors[0].Pointer, body)
	}
	set := `{"array_id":"` + one.ArrayID + `","patch":{"max_runtime_seconds":7200,"priority":"high"}}`
	require.Equal(t, contract.JobsChanged{Changed: 5, Refusals: []contract.JobRefusal{}}, f.changeSet("edit", set, "1"))
	require.Equal(t, contract.JobsChanged{Unchanged: 5, Refusals: []contract.JobRefusal{}}, f.changeSet("edit", set, "2"))
	require.Equal(t, "high", f.job(all[4].ID).Priority)
	f.schedule()
	begun := f.listJobs("state=scheduled")[0]
	for body, field := range map[string]string{`{"max_runtime_seconds":60}`: "/max_runtime_seconds",
		`{"pool":"` + f.pool + `"}`: "/pool", `{"not_before":"2026-12-24T00:00:00Z"}`: "/not_before"} {
		require.Equal(t, field, f.refuse("root", http.MethodPatch, "/v1/jobs/"+begun.ID, body,
			"If-Match", fmt.Sprintf(`"%d"`, begun.Version)).Errors[0].Pointer, "of one that has begun this stays")
	}
	edited := ask[contract.Job](f.world, "root", http.MethodPatch, "/v1/jobs/"+begun.ID, `{"priority":"low"}`, "If-Match",
		fmt.Sprintf(`"%d"`, begun.Version))
	require.Equal(t, []string{"scheduled", "low"}, []string{edited.State, edited.Priority})
	hold := f.refuse("root", http.MethodPost, "/v1/jobs/"+begun.ID+"/hold", "", "Idempotency-Key", "hold")
	require.Equal(t, contract.CodeStateConflict, hold.Code)
	require.Equal(t, "forewarm jobs requeue --hold "+begun.ID, hold.Fixes[0].Command)
	shelved := ask[contract.Job](f.world, "root", http.MethodPost, "/v1/jobs/"+begun.ID+"/shelve", "", "Idempotency-Key",
		"shelve")
	require.Equal(t, "held", shelved.State)
	require.Equal(t, contract.JobsChanged{Changed: 3, Unchanged: 2, Refusals: []contract.JobRefusal{}},
		f.changeSet("shelve", `{"array_id":"`+one.ArrayID+`"}`, "1"))
	require.Equal(t, "/not_before", f.refuse("root", http.MethodPost, "/v1/jobs", `{"pool":"`+f.pool+`",`+
		`"command":["true"],"not_before":"9999-12-31T23:59:59-23:59"}`, "Idempotency-Key", "far").Errors[0].Pointer)
	many := `{"mine":true,"states":[` + strings.Repeat(`"held",`, 9) + `"held"]}`
	require.Equal(t, contract.CodeValidationFailed, f.refuse("root", http.MethodPost, "/v1/jobs/hold", many,
		"Idempotency-Key", "many").Code)
	far := f.send("root", http.MethodGet, "/v1/pools/"+f.pool+"/calendar?from=9999-12-31T23:59:59-23:59", "")
	require.Equal(t, 4, far.Code/100)
}

// Of those who change the same version of a job at once one does, and the others hear of it.
func TestAVersionOfAJobIsEditedOnce(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	one := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"hold":true}`)[0]
	var done sync.WaitGroup
	var won atomic.Int32
	for i := range 16 {
		done.Go(func() {
			out := f.send("root", http.MethodPatch, "/v1/jobs/"+one.ID, fmt.Sprintf(`{"name":"n%d"}`, i), "If-Match",
				fmt.Sprintf(`"%d"`, one.Version))
			if out.Code == http.StatusOK {
				won.Add(1)
			}
		})
	}
	done.Wait()
	require.EqualValues(t, 1, won.Load())
	require.Equal(t, one.Version+1, f.job(one.ID).Version)
}
