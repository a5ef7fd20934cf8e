package jobs_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source/jobs"
	"github.com/forewarm/forewarm/internal/clock"
)

const header = "job_id,group,submit_ts,duration_s,gpus\n"

type bench struct {
	*testing.T
	path string
	cfg  jobs.Config
	jobs *jobs.Jobs
}

func newBench(t *testing.T, format jobs.Format) *bench {
	t.Helper()
	b := &bench{T: t, path: filepath.Join(t.TempDir(), "history")}
	b.cfg = jobs.Config{Path: b.path, Format: format, Clock: clock.NewManual(time.Unix(1_800_000_000, 0))}
	b.restartSource()
	t.Cleanup(func() { _ = b.jobs.Close() })
	return b
}

func (b *bench) restartSource() {
	b.Helper()
	var err error
	b.cfg.Checkpoint, err = history.OpenCheckpoint(filepath.Join(filepath.Dir(b.path), "state.json"))
	require.NoError(b, err)
	b.jobs, err = jobs.New(b.cfg)
	require.NoError(b, err)
}

func (b *bench) appendText(text string) {
	b.Helper()
	f, err := os.OpenFile(b.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(b, err)
	_, err = f.WriteString(text)
	require.NoError(b, err)
	require.NoError(b, f.Close())
}

// replaceFile puts a new file in the place of the old one, as a careful script does.
func (b *bench) replaceFile(data []byte) {
	b.Helper()
	require.NoError(b, os.WriteFile(b.path+".new", data, 0o600))
	require.NoError(b, os.Rename(b.path+".new", b.path))
}

// nextIDs steps until nothing is left and returns the IDs.
func (b *bench) nextIDs() []string {
	b.Helper()
	ids := []string{}
	for {
		items, err := b.jobs.Step(context.Background())
		require.NoError(b, err)
		if len(items) == 0 {
			return ids
		}
		for _, i := range items {
			require.Nil(b, i.Line)
			ids = append(ids, i.Record.ID)
		}
	}
}

func fileNames(of ...string) []string {
	ids := []string{}
	for _, n := range of {
		ids = append(ids, history.Pseudonym(nil, n))
	}
	return ids
}

func TestAGrowingCSVIsReadOnFromWhereItWas(t *testing.T) {
	t.Parallel()
	b := newBench(t, jobs.CSV)
	require.Empty(t, b.nextIDs())
	b.appendText(header + "a,g,1504521041,5,1\nbroken\nb,g,15045")
	require.Equal(t, fileNames("a"), b.nextIDs())
	require.NoError(t, b.jobs.Commit())
	require.EqualValues(t, 1, b.jobs.Report().Broken)
	require.EqualValues(t, 3, b.jobs.Report().Errors[0].Line)

	require.NoError(t, b.jobs.Close())
	b.appendText("21042,5,1\n\nc,g,1504521043,5,1\n")
	b.restartSource()
	require.Equal(t, fileNames("b", "c"), b.nextIDs())
	require.Equal(t, history.Report{Rows: 2, Kept: 2}, b.jobs.Report())
}

func TestARotatedCSVMayHaveOtherColumns(t *testing.T) {
	t.Parallel()
	b := newBench(t, jobs.CSV)
	b.appendText(header + "a,g,1504521041,5,1\n")
	require.Equal(t, fileNames("a"), b.nextIDs())
	require.NoError(t, os.Rename(b.path, b.path+".1"))
	b.appendText("gpus,submit_ts,job_id\n4,1504521042,b\n")
	require.Equal(t, fileNames("b"), b.nextIDs())
}

func TestACSVWithoutTheColumnsIsAnError(t *testing.T) {
	t.Parallel()
	b := newBench(t, jobs.CSV)
	b.appendText("name,when\nx,y\n")
	_, err := b.jobs.Step(context.Background())
	var missing *history.HeaderError
	require.ErrorAs(t, err, &missing)
}

func TestAGrowingJSONL(t *testing.T) {
	t.Parallel()
	b := newBench(t, jobs.JSONL)
	b.appendText(`{"job_id":"a","submit_ts":1504521041,"gpus":1}` + "\n")
	require.Equal(t, fileNames("a"), b.nextIDs())
	b.appendText(`{"job_id":"b","submit_ts":1504521041,"gpus":1}` + "\n{}\n")
	require.Equal(t, fileNames("b"), b.nextIDs())
	require.EqualValues(t, 1, b.jobs.Report().Broken)
}

const sacct = "JobID|Submit|Start|End|State|AllocTRES|JobName\n"

func TestAReplacedSacctTextHandsOverWhatIsNewOrChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t, jobs.Sacct)
	require.Empty(t, b.nextIDs())
	running := "1|2026-07-01T09:00:00|2026-07-01T09:00:00|Unknown|RUNNING|gres/gpu=1|x\n"
	second := "2|2026-07-01T09:00:00|Unknown|Unknown|PENDING|gres/gpu=2|x\n"
	b.replaceFile([]byte(sacct + running + second + "1.batch|||||| \n"))
	require.Equal(t, fileNames("1", "2"), b.nextIDs())
	require.Empty(t, b.nextIDs())
	ended := "1|2026-07-01T09:00:00|2026-07-01T09:00:00|2026-07-01T10:00:00|COMPLETED|gres/gpu=1|x\n"
	b.replaceFile([]byte(sacct + ended + second + "3|2026-07-01T09:00:00|Unknown|Unknown|PENDING|gres/gpu=2|x\n"))
	require.Equal(t, fileNames("1", "3"), b.nextIDs())
	require.EqualValues(t, 3, b.jobs.Report().Kept)
}

func TestAReplacedQueueHandsOverWhatIsNewOrChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t, jobs.Squeue)
	queue := "JOBID|SUBMIT_TIME|START_TIME|STATE|NODES|TRES_PER_NODE|NAME|\n"
	second := "2|2026-07-01T09:00:00|N/A|PENDING|1|gres:gpu:2|x|\n"
	b.replaceFile([]byte(queue + "1|2026-07-01T09:00:00|N/A|PENDING|1|gres:gpu:1|x|\n" + second))
	require.Equal(t, fileNames("1", "2"), b.nextIDs())
	b.replaceFile([]byte(queue + "1|2026-07-01T09:00:00|2026-07-01T09:00:09|RUNNING|1|gres:gpu:1|x|\n" + second))
	require.Equal(t, fileNames("1"), b.nextIDs())
}

func TestALargeGzipComesInParts(t *testing.T) {
	t.Parallel()
	b := newBench(t, jobs.CSV)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprint(w, header)
	for i := range 25_000 {
		fmt.Fprintf(w, "j%d,g,1504521041,5,1\n", i)
	}
	require.NoError(t, w.Close())
	b.replaceFile(packed.Bytes())
	items, err := b.jobs.Step(context.Background())
	require.NoError(t, err)
	require.Len(t, items, 10_000)
	require.Len(t, b.nextIDs(), 15_000)
	require.EqualValues(t, 25_000, b.jobs.Report().Kept)
}

func TestALinkIsRefused(t *testing.T) {
	t.Parallel()
	for _, format := range []jobs.Format{jobs.CSV, jobs.Sacct} {
		b := newBench(t, format)
		require.NoError(t, os.Symlink("/etc/passwd", b.path))
		_, err := b.jobs.Step(context.Background())
		require.ErrorContains(t, err, "symbolic link")
	}
}

func TestBadConfigs(t *testing.T) {
	t.Parallel()
	c, err := history.OpenCheckpoint(filepath.Join(t.TempDir(), "x"))
	require.NoError(t, err)
	for _, bad := range []jobs.Config{
		{Checkpoint: c, Format: jobs.CSV}, {Path: "x", Format: jobs.CSV}, {Path: "x", Checkpoint: c, Format: "xml"},
	} {
		_, err := jobs.New(bad)
		require.Error(t, err)
	}
}
