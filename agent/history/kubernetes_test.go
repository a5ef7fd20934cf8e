package history_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
)

const pod = `{"apiVersion":"v1","kind":"Pod",
 "metadata":{"name":"train-x","namespace":"lab","uid":%q,"creationTimestamp":"2026-03-02T08:00:00Z",
   "ownerReferences":[{"kind":"Job","uid":%q}]},
 "spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"2","cpu":"4"}}},
     {"resources":{"requests":{"nvidia.com/gpu":1}}},{}],
   "initContainers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]},
 "status":{"phase":%q,"startTime":"2026-03-02T08:05:00Z","containerStatuses":[
   {"state":{"terminated":{"finishedAt":"2026-03-02T09:05:00Z"}}},
   {"state":{"terminated":{"finishedAt":"2026-03-02T09:04:00Z"}}}]}}`

const job = `{"kind":"Job",
 "metadata":{"name":"train","namespace":"lab","uid":%q,"creationTimestamp":"2026-03-02T07:00:00Z"},
 "spec":{"parallelism":3,"template":{"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}},
 "status":{"startTime":"2026-03-02T07:10:00Z","completionTime":"2026-03-02T07:40:00Z",
   "conditions":[{"type":"Complete","status":"True"}]}}`

func listJSON(items ...string) string {
	return `{"apiVersion":"v1","items":[` + strings.Join(items, ",\n") + `],"kind":"List","metadata":{}}`
}

func TestReadKubernetesReadsPodsAndJobs(t *testing.T) {
	t.Parallel()
	text := listJSON(fmt.Sprintf(pod, "p1", "other", "Succeeded"), fmt.Sprintf(job, "j1"),
		`{"kind":"Service","spec":{}}`,
		`{"kind":"Pod","metadata":{"uid":"cpu","creationTimestamp":"2026-03-02T08:00:00Z"},"spec":{"containers":[{}]}}`)
	records, report, err := collectRecords(t, history.ReadKubernetes, history.Options{}, text)
	require.NoError(t, err)
	require.EqualValues(t, 4, report.Rows)
	require.EqualValues(t, 2, report.Skipped)
	at := func(text string) time.Time {
		t, err := time.Parse("15:04", text)
		if err != nil {
			panic(err)
		}
		return time.Date(2026, 3, 2, t.Hour(), t.Minute(), 0, 0, time.UTC)
	}
	require.Equal(t, []history.Record{
		{
			ID: history.Pseudonym(nil, "p1"), Tenant: "lab", Submitted: at("08:00"), Started: at("08:05"),
			Ended:    at("09:05"),
			Duration: time.Hour, GPUs: 3, State: history.Completed,
		},
		{
			ID: history.Pseudonym(nil, "j1"), Tenant: "lab", Submitted: at("07:00"), Ended: at("07:40"),
			Duration: 30 * time.Minute, GPUs: 6, State: history.Completed,
		},
	}, withoutHashes(records))
}

func TestAPodThatRunsHasNoEnd(t *testing.T) {
	t.Parallel()
	records, _, err := collectRecords(t, history.ReadKubernetes, history.Options{},
		fmt.Sprintf(pod, "p1", "", "Running"))
	require.NoError(t, err)
	require.Len(t, records, 1, "a single object is a history too")
	require.Equal(t, history.Running, records[0].State)
	require.True(t, records[0].Ended.IsZero())
	require.Zero(t, records[0].Duration)
}

func TestAJobIsNotCountedBesideItsPods(t *testing.T) {
	t.Parallel()
	records, report, err := collectRecords(t, history.ReadKubernetes, history.Options{}, listJSON(
		fmt.Sprintf(job, "j1"), fmt.Sprintf(pod, "p1", "j1", "Succeeded"), fmt.Sprintf(job, "j2")))
	require.NoError(t, err)
	require.EqualValues(t, 1, report.Skipped)
	require.Equal(t, history.Pseudonym(nil, "p1"), records[0].ID)
	require.Equal(t, history.Pseudonym(nil, "j2"), records[1].ID)
}

func TestABrokenObjectIsNamedByItsPlace(t *testing.T) {
	t.Parallel()
	good := fmt.Sprintf(pod, "p1", "", "Succeeded")
	for _, c := range []struct{ name, object, field string }{
		{"bad time", strings.Replace(good, "2026-03-02T08:00:00Z", "yesterday", 1),
			"items[1] metadata.creationTimestamp"},
		{"no time", strings.Replace(good, "2026-03-02T08:00:00Z", "", 1), "items[1] submitted"},
		{"half a gpu", strings.Replace(good, `"2"`, `"500m"`, 1), "items[1] resources"},
		{"ends before it starts", strings.ReplaceAll(good, "2026-03-02T09:0", "2026-03-01T09:0"), "items[1] ended"},
		{"wrong type", `{"kind":"Pod","metadata":[]}`, "items[1]"},
		{"no name", `{"kind":"Pod","metadata":{},"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":1}}}]}}`,
			"items[1] metadata.uid"},
	} {
		records, report, err := collectRecords(t, history.ReadKubernetes, history.Options{},
			listJSON(good, c.object, good))
		require.NoError(t, err, c.name)
		require.Len(t, records, 2, c.name)
		require.EqualValues(t, 1, report.Broken, c.name)
		require.Equal(t, c.field, report.Errors[0].Field, c.name)
		require.Zero(t, report.Errors[0].Line, c.name)
	}
}

func TestReadKubernetesRefusesWhatIsNoList(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "[]", `"x"`, `{"items":{}}`, `{"items":[{"kind":"Pod"},`, `{"items":[}`} {
		_, _, err := collectRecords(t, history.ReadKubernetes, history.Options{}, text)
		require.Error(t, err, text)
	}
}

// endless is one object that never ends.
type endless struct{ began bool }

func (e *endless) Read(p []byte) (int, error) {
	if !e.began {
		e.began = true
		return copy(p, `{"items":[{"kind":"`), nil
	}
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestReadKubernetesHoldsOneObjectOfBoundedSize(t *testing.T) {
	t.Parallel()
	_, err := history.ReadKubernetes(&endless{}, history.Options{}, func(history.Record) error { return nil })
	require.ErrorContains(t, err, "over 16 MiB")
	_, err = history.ReadKubernetes(strings.NewReader(fmt.Sprintf(pod, "p", "", "Running")), history.Options{},
		func(history.Record) error { return io.ErrClosedPipe })
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestACSVMaySayWhenAJobStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		read reader
		text string
	}{
		{history.ReadCSV, "job_id,submit_ts,start_ts,duration_s,gpus\na,1504521041,1504521100,60,1\n"},
		{history.ReadJSONL, `{"job_id":"a","submit_ts":1504521041,"start_ts":1504521100,"duration_s":60,"gpus":1}`},
	} {
		records, _, err := collectRecords(t, c.read, history.Options{}, c.text)
		require.NoError(t, err)
		require.Equal(t, time.Unix(1504521100, 0).UTC(), records[0].Started)
		require.Equal(t, time.Unix(1504521160, 0).UTC(), records[0].Ended)
	}
	_, report, err := collectRecords(t, history.ReadCSV, history.Options{},
		"job_id,submit_ts,start_ts,gpus\na,1504521041,soon,1\n")
	require.NoError(t, err)
	require.Equal(t, "start_ts", report.Errors[0].Field)
}
