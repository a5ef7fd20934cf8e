package server_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// reserveNow reserves GPUs of the fleet's pool for an hour from now on, and has them claimable.
func (f *jobFleet) reserveNow(key, body string) contract.Reservation {
	f.t.Helper()
	start := f.clock.Now().UTC()
	got := ask[contract.Reservation](f.world, key, http.MethodPost, "/v1/reservations", `{"pool":"`+f.pool+`","gpus":1,`+
		`"start":"`+start.Format(time.RFC3339Nano)+`","end":"`+start.Add(time.Hour).Format(time.RFC3339Nano)+`"`+body+`}`,
		"Idempotency-Key", "reserve"+body)
	return got
}

// A job claims over the wire what its submitter has reserved, and both say so. One for no jobs is claimed by none.
func TestAJobClaimsOverTheWire(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	mine := f.reserveNow("root", `,"name":"mine"`)
	require.Equal(t, "mine", mine.ForJobs)
	none := f.reserveNow("root", `,"name":"none","for_jobs":"none"`)
	require.Equal(t, "none", none.ForJobs)
	f.runDueTasks(contract.Pool{}) // they are warmed
	made := f.submit("root", `{"pool":"`+f.pool+`","gpus":1,"max_runtime_seconds":60,"command":["true"]}`)
	f.schedule()
	read := func(id string) contract.Reservation {
		return ask[contract.Reservation](f.world, "root", http.MethodGet, "/v1/reservations/"+id, "")
	}
	require.Equal(t, "claimed", read(mine.ID).State)
	require.Equal(t, made[0].ID, read(mine.ID).JobID)
	all := ask[contract.List[contract.Reservation]](f.world, "root", http.MethodGet, "/v1/reservations", "")
	require.True(t, slices.ContainsFunc(all.Items, func(r contract.Reservation) bool {
		return r.PartOf == mine.ID && r.Start.After(mine.Start)
	}), "what the job leaves is a part of it")
	require.NotEqual(t, "claimed", read(none.ID).State)
	why := ask[contract.Explanation](f.world, "root", http.MethodGet, "/v1/jobs/"+made[0].ID+"/explain", "")
	require.Contains(t, why.Summary, mine.ID+" (mine)")
	out := f.send("root", http.MethodPost, "/v1/reservations", `{"pool":"`+f.pool+`","gpus":1,"for_jobs":"all",`+
		`"start":"2099-01-01T00:00:00Z","end":"2099-01-01T01:00:00Z"}`, "Idempotency-Key", "wrong")
	require.Equal(t, http.StatusUnprocessableEntity, out.Code, out.Body.String())
	require.Contains(t, out.Body.String(), "for_jobs")
}

// Of a job that is put off the queue tells, and its explanation, that a node is ready for it.
func TestNodesAheadAreToldOfOverTheWire(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	made := f.submit("root", `{"pool":"`+f.pool+`","gpus":1,"max_runtime_seconds":60,"command":["true"],"not_before":"`+
		f.clock.Now().UTC().Add(time.Minute).Format(time.RFC3339Nano)+`"}`)
	f.schedule()
	queue := ask[contract.List[contract.Job]](f.world, "root", http.MethodGet, "/v1/queue?pool="+f.pool, "")
	require.Len(t, queue.Items, 1)
	require.Contains(t, queue.Items[0].Detail, "; a node is ready for it")
	why := ask[contract.Explanation](f.world, "root", http.MethodGet, "/v1/jobs/"+made[0].ID+"/explain", "")
	require.Contains(t, why.Summary, "; a node is ready for it.")
}
