package demo

import (
	"context"
	"encoding/csv"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Person submits the jobs of a rhythm as they come, each in its own time: asks
// for GPUs, waits for them, works, gives them back.
type Person struct {
	Rhythm Rhythm
	Files  Files
	Client *client.Client
	Pool   string
	Log    *slog.Logger
}

// announced is how long before a sweep its preparation shows up in the log.
const announced = 30 * time.Second

// lease is asked for each job: enough to finish, short enough that a job whose
// person was killed does not hold its GPUs for long.
const lease = time.Minute

// Run plays until the context ends.
func (p *Person) Run(ctx context.Context) error {
	for i := max(0, p.firstPeriod(time.Now())); ; i++ {
		for _, job := range p.Rhythm.Period(i) {
			if job.At.Before(time.Now()) {
				continue
			}
			if job.GPUs == sweepGPUs && p.sleepUntil(ctx, job.At.Add(-announced)) == nil {
				p.appendLog(
					fmt.Sprintf("%s dataset ready, %s wants %d GPUs at %s", formatTime(time.Now()), job.Name, job.GPUs,
						formatTime(job.At)))
			}
			if p.sleepUntil(ctx, job.At) != nil {
				return nil
			}
			go p.doJob(ctx, job)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// firstPeriod is the period that t lies in.
func (p *Person) firstPeriod(t time.Time) int {
	since := t.Sub(p.Rhythm.Anchor)
	i := int(since / Period)
	if since < 0 {
		i--
	}
	return i
}

// doJob is one job from request to release. A refusal is part of the story, which
// the journal tells.
func (p *Person) doJob(ctx context.Context, job Arrival) {
	if err := p.appendHistory(job); err != nil {
		p.Log.Warn("the synthetic history could not be written", "error", err)
	}
	a, err := p.Client.Allocate(ctx, contract.AllocationCreate{Pool: p.Pool, GPUs: job.GPUs,
		LeaseSeconds: int64(lease / time.Second), Name: job.Name}, client.Options{})
	if err != nil {
		p.Log.Warn("the demo's job got no place", "job", job.Name, "error", err)
		return
	}
	for a.State == "pending" {
		if p.sleepUntil(ctx, time.Now().Add(500*time.Millisecond)) != nil {
			return
		}
		if a, err = p.Client.Allocation(ctx, a.ID); err != nil {
			return
		}
	}
	if p.sleepUntil(ctx, time.Now().Add(job.For)) != nil {
		return
	}
	if _, err := p.Client.Release(ctx, a.ID); err != nil && ctx.Err() == nil {
		p.Log.Warn("the demo's job could not be released", "job", job.Name, "error", err)
	}
}

// appendHistory appends the job to the history that the agent follows.
func (p *Person) appendHistory(job Arrival) error {
	f, err := os.OpenFile(p.Files.History, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	out := csv.NewWriter(f)
	werr := out.Write(csvRow(job))
	out.Flush()
	if cerr := f.Close(); werr == nil {
		werr = cerr
	}
	return werr
}

// appendLog appends a line to the log that the agent follows.
func (p *Person) appendLog(text string) {
	f, err := os.OpenFile(p.Files.Log, os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, text)
		_ = f.Close() // a lost line costs the demo one hint
	}
	if err != nil {
		p.Log.Warn("the synthetic log could not be written", "error", err)
	}
}

func (*Person) sleepUntil(ctx context.Context, until time.Time) error {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func formatTime(t time.Time) string { return t.UTC().Format("15:04:05Z") }
