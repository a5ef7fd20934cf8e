package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/await"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

const (
	lookEvery  = time.Second      // between two looks at a job
	placeEvery = 30 * time.Second // between two questions for its place in the queue
	retryAfter = 2 * time.Second  // when a stream of output broke off
)

// follower shows what becomes of a job and what it writes.
type follower struct {
	app     *app.App
	cmd     *cobra.Command
	api     *client.Client // asks
	streams *client.Client // reads what does not end
	out     *printer
	next    int       // the attempt whose output is shown next, from 1
	last    int       // the last one that is wanted; zero: none is the last
	ranks   []reading // of that attempt
	told    string    // what the person was told last
	place   int       // in the queue, when it was asked for last
	placeAt time.Time // when that was
	blocked string    // why it has not begun on its GPUs, once that takes long
	silent  bool      // the person is told of its end alone
}

// reading is how far the output of one node was shown.
type reading struct {
	rank   int
	offset int64
	tail   int64     // only so many bytes before the end are wanted; zero: all
	since  time.Time // only what was written from then on is wanted; zero: all
	moved  bool      // since the last look at the job
}

func newFollower(a *app.App, cmd *cobra.Command, api *client.Client, ranks []reading, raw bool) (*follower, error) {
	streams, err := a.NewStreamClient()
	if err != nil {
		return nil, err
	}
	return &follower{app: a, cmd: cmd, api: api, streams: streams, out: newPrinter(a, cmd, len(ranks) > 1, raw),
		ranks: ranks, next: 1}, nil
}

// follow shows a job until it is over, and returns how it ended.
func (f *follower) follow(ctx context.Context, job contract.Job) (contract.Job, error) {
	defer f.out.uncolour()
	for {
		f.tell(job)
		if err := f.showBegun(ctx, job); err != nil {
			return job, err
		}
		if client.IsJobOver(job.State) || f.last > 0 && f.next > f.last {
			return job, nil
		}
		if !f.hasMoved() {
			if err := f.app.Pause(ctx, lookEvery); err != nil {
				return job, err
			}
		}
		again, err := f.look(ctx, job.ID)
		if err != nil {
			return job, err
		}
		job = again
	}
}

// hasMoved reports whether anything was shown since it was asked last.
func (f *follower) hasMoved() bool {
	moved := false
	for i := range f.ranks {
		moved = moved || f.ranks[i].moved
		f.ranks[i].moved = false
	}
	return moved
}

// look reads the job, however long the server does not answer.
func (f *follower) look(ctx context.Context, id string) (job contract.Job, err error) {
	poll := client.Poll{Now: f.app.Clock.Now, Pause: f.app.Pause, OnBroken: func(err error) {
		f.app.Say(f.cmd, "%s; the job goes on, and the server is asked again.", await.TroubleText(err))
	}}
	err = poll.Until(ctx, func(ctx context.Context) (bool, error) {
		job, err = f.read(ctx, id)
		return err == nil, err
	})
	return job, err
}

// read asks for the job, and now and then for its place in the queue, too: that is more work for the server.
func (f *follower) read(ctx context.Context, id string) (job contract.Job, err error) {
	now := f.app.Clock.Now()
	if !f.placeAt.IsZero() && now.Sub(f.placeAt) < placeEvery {
		return f.api.Job(ctx, id)
	}
	if job, err = f.api.JobInQueue(ctx, id); err != nil {
		return job, err
	}
	first := f.placeAt.IsZero()
	f.place, f.placeAt, f.blocked = job.Position, now, ""
	if !first && job.State == contract.JobScheduled {
		e, err := f.api.ExplainJob(ctx, id)
		if err == nil && len(e.Blockers) > 0 {
			f.blocked = e.Blockers[0].Message
		}
		return job, err
	}
	return job, nil
}

// tell says what the job does, when that has changed.
func (f *follower) tell(x contract.Job) {
	text := x.State
	switch x.State {
	case contract.JobPending, contract.JobHeld, contract.JobPreempted:
		if why := reasonText(x); why != "" {
			text += ": " + why
		}
		if f.place > 0 && x.State == contract.JobPending {
			text += fmt.Sprintf(", place %d in the queue", f.place)
		}
	case contract.JobScheduled, contract.JobRunning:
		text += fmt.Sprintf(" on %s of %s", format.Count(x.GPUs, "GPU"), poolText(x))
		if x.Attempt > 1 {
			text += fmt.Sprintf(", attempt %d", x.Attempt)
		}
		if f.blocked != "" && x.State == contract.JobScheduled {
			text += ". " + f.blocked
		}
	default:
		return // its end is told by who asked for it
	}
	if text != f.told && !f.silent {
		f.app.Say(f.cmd, "%s  %s", x.ID, text)
	}
	f.told = text
}

// begun is how many attempts of a job have begun.
func begun(x contract.Job) int {
	if x.State == contract.JobScheduled {
		return x.Attempt - 1
	}
	return x.Attempt
}

// showBegun shows the output of the attempts that have begun, each to its end. That of the last one
// is asked for again as long as the job runs: a stream also ends when its server does.
func (f *follower) showBegun(ctx context.Context, job contract.Job) error {
	for f.next <= begun(job) && (f.last == 0 || f.next <= f.last) {
		if err := f.showAttempt(ctx, job.ID); err != nil {
			return err
		}
		if f.next == job.Attempt && (job.State == contract.JobRunning || job.State == contract.JobPreempted) {
			return nil
		}
		if err := f.out.finish(); err != nil {
			return err
		}
		f.next++
		for i := range f.ranks {
			f.ranks[i].offset, f.ranks[i].tail, f.ranks[i].since = 0, 0, time.Time{}
		}
	}
	return nil
}

// showAttempt shows what the next attempt writes on all ranks, until its streams end.
func (f *follower) showAttempt(ctx context.Context, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, len(f.ranks))
	for i := range f.ranks {
		go func() { failed <- f.showRank(ctx, id, &f.ranks[i]) }()
	}
	var first error
	for range f.ranks {
		if err := <-failed; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}

// showRank shows what the next attempt writes on one node. What breaks off is taken up again.
func (f *follower) showRank(ctx context.Context, id string, at *reading) error {
	for {
		err := f.readRank(ctx, id, at)
		refused, isAnswer := errors.AsType[*client.Error](err)
		if err == nil || ctx.Err() != nil || isAnswer && !refused.Problem.Retryable || errors.Is(err, errWriting) {
			return err
		}
		f.out.say("The output broke off: %s; trying again.", await.TroubleText(err))
		if err := f.app.Pause(ctx, retryAfter); err != nil {
			return err
		}
	}
}

func (f *follower) readRank(ctx context.Context, id string, at *reading) error {
	from := client.OutputQuery{Attempt: f.next, Rank: at.rank, Offset: at.offset, Tail: at.tail,
		Since: at.since, Follow: true}
	for piece, err := range f.streams.JobOutput(ctx, id, from) {
		if err != nil {
			return err
		}
		if err := f.out.show(piece); err != nil {
			return err
		}
		at.offset, at.moved = piece.Offset+int64(len(piece.Data)), true
		at.tail, at.since = 0, time.Time{}
	}
	return nil
}
