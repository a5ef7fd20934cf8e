package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/node"
)

// nodeJob is an attempt of a job on a node, as its daemon knows it.
type nodeJob struct {
	report contract.JobReport
	wrote  int64
}

// workOnJobs has the daemons of all nodes start what they are told to, and what they have started do
// what text says: "writes LINE", "warns LINE" or "ends CODE"; nothing: go on.
func (w *town) workOnJobs(text string) {
	w.t.Helper()
	verb, rest, _ := strings.Cut(text, " ")
	for _, n := range w.readyNodes() {
		if w.attached[n.ID] {
			continue
		}
		w.reportJobs(n)
		for _, j := range w.working[n.ID] {
			switch verb {
			case "writes":
				w.storeOutput(n, j, "stdout", rest+"\n")
			case "warns":
				w.storeOutput(n, j, "stderr", rest+"\n")
			case "ends":
				code, err := strconv.Atoi(rest)
				require.NoError(w.t, err)
				j.report.State, j.report.ExitCode = contract.JobRankEnded, code
			}
		}
		w.reportJobs(n)
	}
}

// reportJobs is a heartbeat of a node, and what its daemon does with the answer.
func (w *town) reportJobs(n node.Node) {
	w.t.Helper()
	var reports []contract.JobReport
	for _, j := range w.working[n.ID] {
		reports = append(reports, j.report)
	}
	answer := w.beat(n, 0, reports)
	w.working[n.ID] = slices.DeleteFunc(w.working[n.ID], func(j *nodeJob) bool {
		return slices.Contains(answer.ForgetJobs, j.report.JobKey)
	})
	for _, o := range answer.Jobs {
		w.working[n.ID] = append(w.working[n.ID], &nodeJob{
			report: contract.JobReport{JobKey: o.JobKey, Rank: o.Rank, State: contract.JobRankRunning}})
	}
}

func (w *town) storeOutput(n node.Node, j *nodeJob, stream, text string) {
	w.t.Helper()
	got, err := w.daemonOf(n).PutJobOutput(w.t.Context(), n.ID, j.report.JobID, contract.JobOutputPart{
		Attempt: j.report.Attempt, Rank: j.report.Rank, Offset: j.wrote,
		Pieces: []contract.JobOutputData{{Stream: stream, At: w.clock.Now().UTC(), Data: []byte(text)}}})
	require.NoError(w.t, err)
	j.wrote += int64(len(text))
	require.Equal(w.t, j.wrote, got.NextOffset)
}

// hasJobs reports whether a job runs anywhere.
func (w *town) hasJobs() bool {
	for _, jobs := range w.working {
		if len(jobs) > 0 {
			return true
		}
	}
	return false
}

// startJobs lets time pass until a job runs.
func (w *town) startJobs() {
	w.t.Helper()
	for passed := 0; !w.hasJobs(); passed++ {
		require.Less(w.t, passed, 300, w.mustRun("jobs", "list", "-o", "wide"))
		w.passTime(time.Second)
		w.workOnJobs("")
	}
}

// pauseWorking has the world go on at each pause, and what jobs run do all of the steps.
func (w *town) pauseWorking(steps ...string) {
	w.onPause = func() {
		w.passTime(time.Second)
		w.workOnJobs("")
		for _, step := range steps {
			if w.hasJobs() {
				w.workOnJobs(step)
			}
		}
	}
}
