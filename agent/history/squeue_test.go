package history_test

import (
	_ "embed"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
)

// Recorded from Slurm 22.05.8; the accounts and names were added.
//
//go:embed testdata/squeue.txt
var squeue string

func TestTheQueueOfSlurm(t *testing.T) {
	t.Parallel()
	s := history.NewScanner(strings.NewReader(squeue), history.NewSqueue(history.Options{}))
	var all []history.Record
	for s.Scan() {
		all = append(all, s.Record())
	}
	require.NoError(t, s.Err())
	require.EqualValues(t, 1, s.Report().Broken)
	at := func(clock string) time.Time {
		moment, err := time.Parse(time.DateTime, "2026-11-21 "+clock)
		require.NoError(t, err)
		return moment
	}
	submitted := at("19:10:50")
	require.Equal(t, []history.Record{
		{ID: history.Pseudonym(nil, "1"), Tenant: "n1", Submitted: submitted, Started: at("19:10:51"), GPUs: 2,
			State: history.Running},
		{ID: history.Pseudonym(nil, "2_1"), Tenant: "physics", Submitted: submitted, GPUs: 8, State: history.Pending},
		{
			ID: history.Pseudonym(nil, "3"), Tenant: "physics", Submitted: submitted, Started: at("19:11:00"),
			Ended:    at("19:12:00"),
			Duration: time.Minute, GPUs: 3, State: history.Completed,
		},
		{ID: history.Pseudonym(nil, "4"), Tenant: "physics", Submitted: submitted, GPUs: 1, State: history.Pending},
		{ID: history.Pseudonym(nil, "5"), Tenant: "physics", Submitted: submitted, GPUs: 7, State: history.Pending},
	}, withoutHashes(all))

	require.EqualValues(t, 3, s.Report().Skipped)
	for _, header := range []string{"JOBID|STATE|\n", strings.Replace(squeue, "|NAME|", "|", 1)} {
		s = history.NewScanner(strings.NewReader(header), history.NewSqueue(history.Options{}))
		require.False(t, s.Scan())
		require.Error(t, s.Err())
	}
	require.ErrorContains(t, s.Err(), "no column Name: without it Forewarm's own placeholders would count as your jobs")
}

func FuzzSqueue(f *testing.F) {
	fuzzReader(f, func(r io.Reader, o history.Options, each func(history.Record) error) (history.Report, error) {
		s := history.NewScanner(r, history.NewSqueue(o))
		for s.Scan() {
			if err := each(s.Record()); err != nil {
				return s.Report(), err
			}
		}
		return s.Report(), s.Err()
	}, squeue, "JOBID|SUBMIT_TIME|STATE|NODES|TRES_PER_NODE|NAME\n"+
		"1|1504521041|R|99999|gpu:99999,gres/gpu=9223372036854775807|x\n")
}
