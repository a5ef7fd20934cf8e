package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// followToItsEnd follows a job that this command submitted, and ends as it does.
func followToItsEnd(a *app.App, cmd *cobra.Command, api *client.Client, job contract.Job, raw bool) error {
	f, err := newFollower(a, cmd, api, allRanks(job), raw)
	if err != nil {
		return err
	}
	ended, err := f.follow(cmd.Context(), job)
	switch {
	case cmd.Context().Err() != nil:
		return f.leave(job.ID)
	case err != nil:
		return err
	}
	return f.tellEnd(ended)
}

// allRanks are the nodes of a job.
func allRanks(x contract.Job) []reading {
	all := make([]reading, max(1, x.Nodes))
	for rank := range all {
		all[rank].rank = rank
	}
	return all
}

// tellEnd says how a job ended, and is what this command ends with.
func (f *follower) tellEnd(x contract.Job) error {
	if x.State == contract.JobCompleted {
		f.app.Say(f.cmd, "%s  completed in %s: %s GPU-hours, %s", x.ID, lengthText(x.EndedAt.Sub(x.StartedAt)),
			format.Hours(float64(x.GPUSeconds)/3600), format.Money(x.Cost))
		return nil
	}
	e := &exit.Error{Code: exit.WaitFailed, Message: x.ID + " " + x.State + endText(x),
		Next: []string{"forewarm jobs show " + x.ID, "forewarm events --last 20"}}
	if !x.StartedAt.IsZero() { // it may have written why
		e.Next = []string{"forewarm jobs logs " + x.ID, "forewarm jobs show " + x.ID}
	}
	switch {
	case x.State == contract.JobCancelled:
	case x.Reason == contract.JobNotStarted:
		e.Code = exit.NotStarted
	case x.ExitCode != nil && *x.ExitCode != 0:
		e.Code = *x.ExitCode
	}
	return e
}

// endText says why a job did not complete.
func endText(x contract.Job) string {
	why := reasonText(x)
	if x.ExitCode != nil && x.State == contract.JobFailed && !strings.Contains(why, "exit code") {
		why += fmt.Sprintf(", with the exit code %d", *x.ExitCode)
	}
	if why == "" {
		return ""
	}
	return ": " + why
}

// changeOfMind is for how long after Ctrl-C a second one cancels the job.
const changeOfMind = 2 * time.Second

// leave lets go of a job that goes on, unless who interrupts does so twice.
func (f *follower) leave(id string) error {
	e := &exit.Error{Code: exit.Interrupt, Message: "no longer following " + id + ", which goes on",
		Next: []string{"forewarm jobs logs -f " + id, "forewarm jobs cancel " + id}, Err: context.Canceled}
	if !f.isInterruptedAgain(id) {
		return e
	}
	got, err := f.api.CancelJob(context.WithoutCancel(f.cmd.Context()), id)
	if err != nil {
		e.Message, e.Next, e.Err = fmt.Sprintf("cancelling %s: %v", id, err), e.Next[1:], err
		return e
	}
	if got.Ending != nil {
		e.Message, e.Next = fmt.Sprintf("%s was told to end, and has its grace of %s", id, format.Seconds(got.GraceSeconds)),
			[]string{"forewarm wait " + id}
		return e
	}
	e.Message, e.Next = "cancelled "+id, []string{"forewarm jobs show " + id}
	return e
}

// isInterruptedAgain reports whether Ctrl-C comes once more. After SIGTERM nobody is there to say so.
func (f *follower) isInterruptedAgain(id string) bool {
	ctx := f.cmd.Context()
	if by, ok := errors.AsType[*exit.Interrupted](context.Cause(ctx)); ok && by.Signal == syscall.SIGTERM {
		return false
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt)
	defer signal.Stop(again)
	f.app.Say(f.cmd, "%s goes on. Ctrl-C again within %s cancels it.", id, format.Duration(changeOfMind))
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = f.app.Pause(waiting, changeOfMind)
	}()
	select {
	case <-again:
		return true
	case <-over:
		return false
	}
}
