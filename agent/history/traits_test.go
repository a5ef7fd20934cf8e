package history_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
)

// withoutHashes are records without what their own tests are about.
func withoutHashes(records []history.Record) []history.Record {
	for i := range records {
		records[i].Class, records[i].Array = 0, 0
	}
	return records
}

func TestJobsOfOneUserAndNameAreOfOneClass(t *testing.T) {
	t.Parallel()
	const text = "JobID|Submit|State|User|AllocTRES|JobName\n" +
		"1|1700000000|FAILED|ann|gres/gpu=1|train\n" +
		"2_0|1700000100|TIMEOUT|ann|gres/gpu=1|train\n" +
		"2_1|1700000100|COMPLETED|ann|gres/gpu=1|train\n" +
		"3|1700000200|OUT_OF_MEMORY|ann|gres/gpu=1|other\n" +
		"4|1700000300|PREEMPTED|bob|gres/gpu=1|train\n"
	records, _, err := collectRecords(t, history.ReadSacct, history.Options{}, text)
	require.NoError(t, err)
	require.Len(t, records, 5)
	require.NotZero(t, records[0].Class)
	require.Equal(t, records[0].Class, records[1].Class)
	require.NotEqual(t, records[0].Class, records[3].Class, "another name")
	require.NotEqual(t, records[0].Class, records[4].Class, "another user")
	require.Zero(t, records[0].Array, "no array")
	require.NotZero(t, records[1].Array)
	require.Equal(t, records[1].Array, records[2].Array)
	for i, failed := range []bool{true, true, false, true, true} {
		require.Equal(t, failed, records[i].Failed(), records[i].State)
	}
	salted, _, err := collectRecords(t, history.ReadSacct, history.Options{Salt: []byte("secret")}, text)
	require.NoError(t, err)
	require.NotEqual(t, records[0].Class, salted[0].Class)
	require.NotEqual(t, records[1].Array, salted[1].Array)
}

func TestATraceWithoutUsersAndNamesHasNoClasses(t *testing.T) {
	t.Parallel()
	records, _, err := collectRecords(t, history.ReadCSV, history.Options{},
		"job_id,user,group,submit_ts,duration_s,gpus,status\na,,lab,1700000000,60,1,\nb,ann,lab,1700000000,60,1,\n")
	require.NoError(t, err)
	require.Zero(t, records[0].Class)
	require.NotZero(t, records[1].Class)
}

func TestPodsOfOneKindAreOfOneClass(t *testing.T) {
	t.Parallel()
	class := func(name string) uint32 {
		records, _, err := collectRecords(t, history.ReadKubernetes, history.Options{}, fmt.Sprintf(
			`{"kind":"Pod","metadata":{"name":%q,"namespace":"lab","uid":%q,"creationTimestamp":"2026-03-02T08:00:00Z",
			"ownerReferences":[{"kind":"Job","uid":"j1"}]},
			"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"2"}}}]},"status":{"phase":"Failed"}}`, name, name))
		require.NoError(t, err)
		require.Len(t, records, 1)
		require.NotZero(t, records[0].Array)
		return records[0].Class
	}
	require.Equal(t, class("train"), class("train-x7k2f"))
	require.Equal(t, class("web-6d5f9c7b8-zx8kq"), class("web-7b9d4f5c6-2h4wl"))
	require.Equal(t, class("nightly-28912345-vwx2z"), class("nightly-28913785-4q8kd"))
	require.NotEqual(t, class("train"), class("tune"))
}
