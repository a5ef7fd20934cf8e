package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

func (f *jobFleet) listJobs(query string) []contract.Job {
	f.t.Helper()
	return ask[contract.List[contract.Job]](f.world, "root", http.MethodGet, "/v1/jobs?"+query, "").Items
}

func (f *jobFleet) countJobs(query string) contract.JobCounts {
	f.t.Helper()
	return ask[contract.JobCounts](f.world, "root", http.MethodGet, "/v1/job-counts?"+query, "")
}

// An array of some indices runs as many at once as it says, is found by index, and is counted; what waits says why,
// and its place only to those who ask.
func TestAnArrayOverTheWire(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	all := f.submit("root", `{"pool":"`+f.pool+`","name":"sweep","command":["true"],`+
		`"array":{"indices":[9,2,5],"limit":1}}`)
	array := all[0].ArrayID
	require.Equal(t, 2, *all[0].ArrayIndex)
	require.Equal(t, 1, all[0].ArrayLimit)
	after := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"dependencies":[{"job_id":"`+array+`"}]}`)[0]
	f.schedule()
	order, _ := f.order()
	require.Equal(t, "3", order.Environment["FOREWARM_ARRAY_COUNT"])
	require.Equal(t, "9", order.Environment["FOREWARM_ARRAY_LAST"])

	found := f.listJobs("name=sweep&index=5")
	require.Len(t, found, 1)
	require.Equal(t, "array_limit", found[0].Reason)
	require.Equal(t, "its array runs 1 at once", found[0].Detail)
	require.Len(t, f.listJobs("array="+array), 3)
	waits := f.job(after.ID)
	require.Equal(t, "dependency", waits.Reason)
	require.Equal(t, "afterok "+array, waits.Detail)
	require.Equal(t, contract.JobCounts{Pending: 2, Scheduled: 1}, f.countJobs("array="+array))
	require.Equal(t, contract.JobCounts{Pending: 3, Scheduled: 1}, f.countJobs("mine=true"))

	third := f.submit("root", `{"pool":"`+f.pool+`","command":["true"]}`)[0]
	require.Equal(t, "gpus", f.job(third.ID).Reason)
	require.Zero(t, f.job(third.ID).Position)
	placed := ask[contract.Job](f.world, "root", http.MethodGet, "/v1/jobs/"+third.ID+"?position=true", "")
	require.Equal(t, 1, placed.Position)
}

func TestArraysThatAreRefused(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	for name, array := range map[string]string{
		"both": `{"indices":[1],"last":3}`, "twice": `{"indices":[1,1]}`, "negative": `{"indices":[-1]}`,
		"no limit": `{"last":3,"limit":0}`, "backwards": `{"first":2,"last":1}`,
	} {
		p := f.refuse("root", http.MethodPost, "/v1/jobs", `{"pool":"`+f.pool+`","command":["true"],"array":`+array+`}`,
			"Idempotency-Key", "array-"+name[:4])
		require.Contains(t, []int{400, 422}, p.Status, name)
	}
	first := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"array":{"last":1}}`)[0].ArrayID
	p := f.refuse("root", http.MethodPost, "/v1/jobs", `{"pool":"`+f.pool+`","command":["true"],"dependencies":`+
		`[{"job_id":"`+first+`","condition":"aftercorr"}]}`, "Idempotency-Key", "corresponding")
	require.Contains(t, p.Detail, "between two arrays")
}
