package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
)

// The customer's agent reads the same queue as we write to: by the name and by the comment of a placeholder it must
// know that it is none of the customer's jobs, or it would ask for one more for each.
func TestTheAgentKnowsOurPlaceholders(t *testing.T) {
	t.Parallel()
	c := &Cluster{config: Config{Name: "lab"}}
	mark := c.config.tokenMark("token")
	for _, row := range []string{
		jobName(mark, time.Time{}) + ",",
		jobName(mark, time.Unix(1_795_000_000, 0)) + ",",
		"x," + c.formatComment(tags{token: "token", owner: "acme", node: "nod_1", kind: "a100"}),
	} {
		report, err := history.ReadCSV(strings.NewReader("job_id,submit_ts,gpus,name,comment\n1,1504521041,8,"+row+
			"\n"),
			history.Options{}, func(history.Record) error { return nil })
		require.NoError(t, err)
		require.EqualValues(t, 1, report.Skipped, row)
	}
}
