package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// ending is shown in place of its state of a job that was told to end, and has not yet.
const ending = "ending"

func isEnding(x contract.Job) bool { return x.Ending != nil && x.State != contract.JobPreempted }

// stateText is the state of a job; of one that was told to end that it is ending, and of one that failed without its
// own doing the code of the reason.
func stateText(x contract.Job) string {
	switch {
	case isEnding(x):
		return ending
	case x.State == contract.JobFailed && x.Reason != "" && x.Reason != "exit":
		return x.State + " (" + x.Reason + ")"
	}
	return x.State
}

// exitText is the exit code of a job's last attempt, and the signal that ended it.
func exitText(x contract.Job) string {
	switch {
	case x.ExitCode == nil:
		return "-"
	case x.Signal != "":
		return fmt.Sprintf("%d (%s)", *x.ExitCode, x.Signal)
	}
	return strconv.Itoa(*x.ExitCode)
}

// endingText is what becomes of a job that was told to end, and by when; empty: it was not.
func endingText(x contract.Job) string {
	if x.Ending == nil {
		return ""
	}
	then := x.Ending.Then
	if x.Ending.Hold {
		then = "held"
	}
	text := then
	if x.Ending.For != "" {
		text += " for " + x.Ending.For
	}
	if n := len(x.Ending.UnheardBy); n > 0 {
		return text + ", not heard yet on " + format.Count(n, "node") + ": its GPUs are taken at " + format.Time(x.Ending.By)
	}
	return text + ", KILL at " + format.Time(x.Ending.KillAt)
}

// tellUnheard says of jobs that were just told to end where nobody heard it: their daemons are silent.
func tellUnheard(a *app.App, cmd *cobra.Command, api *client.Client, jobs []contract.Job) {
	for _, x := range jobs {
		if x.Ending == nil {
			continue
		}
		now, err := api.Job(cmd.Context(), x.ID)
		if err != nil || now.Ending == nil || len(now.Ending.UnheardBy) == 0 {
			continue // it has been told, which is what counts
		}
		a.Say(cmd, "%s  nobody has heard that on %s: the daemon there is silent. At %s at the latest its GPUs are taken; "+
			"see: forewarm jobs explain %[1]s", x.ID, strings.Join(now.Ending.UnheardBy, ", "), format.Time(now.Ending.By))
	}
}

// preemptibleText says whether a job may be told to leave for others, and how often it has.
func preemptibleText(x contract.Job) string {
	switch {
	case x.Preemptions == 1:
		return "left for others once"
	case x.Preemptions > 1:
		return fmt.Sprintf("left for others %d times", x.Preemptions)
	case x.Preemptible:
		return "yes"
	}
	return "no"
}
