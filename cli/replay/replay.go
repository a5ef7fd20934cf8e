// Package replay decides again what the scheduler of jobs decided, from its records.
package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/internal/ringfile"
)

// replayed is a record with what deciding on it again gives.
type replayed struct {
	File       string             `json:"file,omitempty"`
	Pool       string             `json:"pool"`
	Identical  bool               `json:"identical"`
	Difference string             `json:"difference,omitempty"`
	Recorded   scheduler.Record   `json:"recorded"`
	Again      scheduler.Replayed `json:"again"`
}

// options are what the command was told.
type options struct {
	job, pool string
	most      int
	tuning    tuning
}

const next = "forewarm replay --help"

// NewCommand is the command replay.
func NewCommand(a *app.App) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use: "replay {FILE... | --pool POOL}", Short: "Decide again what the scheduler of jobs decided (operators)",
		Long: "Decides again, on this machine, what the scheduler decided in each look at a queue, from the files that\n" +
			"cycle_records in forewarm.yaml has workers keep: who was next, who started where, who was promised a start, who\n" +
			"had to leave, and why others wait. It fails where the decision is not the recorded one.\n\n" +
			"With --pool it asks the server what would be decided there now. --order, --share-weight, --softening, --overdue\n" +
			"and --promises decide by another policy instead, and show what would have been different; that is no failure.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (o.pool == "") {
				return exit.UsageErrorf(next, "name files of records, or a pool with --pool")
			}
			if err := o.tuning.check(cmd); err != nil {
				return err
			}
			if o.pool != "" {
				return replayNow(a, cmd, o)
			}
			return replayFiles(a, cmd, o, args)
		},
	}
	c.Flags().StringVar(&o.job, "job", "", "only the looks that concern the job of this id")
	c.Flags().StringVar(&o.pool, "pool", "", "what would be decided in this pool now")
	c.Flags().IntVar(&o.most, "most", 20, "show only this many of the jobs that are next; 0 shows all")
	o.tuning.addFlags(c)
	return c
}

// replayNow replays what a server would decide now.
func replayNow(a *app.App, cmd *cobra.Command, o options) error {
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	cycle, err := api.Cycle(cmd.Context(), o.pool)
	if err != nil {
		return err
	}
	x, err := replayText(cmd, o, cycle.Record)
	if err != nil {
		return err
	}
	if err := show(a, cmd, o, x); err != nil {
		return err
	}
	return verdict(o, cycle.PoolName, []replayed{x})
}

// replayFiles replays the records of files, and goes on to the next file where one is bad.
func replayFiles(a *app.App, cmd *cobra.Command, o options, files []string) error {
	var all []replayed
	var bad []error
	for _, path := range files {
		n := 0
		for text, err := range ringfile.Read(path) {
			var x replayed
			if n++; err == nil {
				x, err = replayText(cmd, o, text)
				if _, isFile := errors.AsType[*ringfile.FileError](err); err != nil && !isFile {
					err = &ringfile.FileError{Path: path, Whole: n - 1, Err: err}
				}
			}
			if err != nil {
				bad = append(bad, err)
				break
			}
			if o.job != "" && !x.concerns(o.job) {
				continue
			}
			x.File = path
			if err := show(a, cmd, o, x); err != nil {
				return err
			}
			x.Recorded, x.Again = scheduler.Record{}, scheduler.Replayed{} // files may have more than memory does
			all = append(all, x)
		}
	}
	if len(bad) > 0 {
		err := errors.Join(bad...)
		return &exit.Error{Code: exit.Failed, Message: err.Error(), Next: []string{next}, Err: err}
	}
	return verdict(o, strings.Join(files, ", "), all)
}

// verdict fails where nothing was found, or where what was decided again differs.
func verdict(o options, in string, all []replayed) error {
	differ := 0
	for _, x := range all {
		if !x.Identical {
			differ++
		}
	}
	switch {
	case len(all) == 0 && o.job != "":
		return &exit.Error{Code: exit.NotFound, Message: fmt.Sprintf("no look in %s concerns %s", in, o.job),
			Next: []string{"forewarm jobs explain " + o.job}}
	case differ > 0 && !o.tuning.isSet:
		return &exit.Error{Code: exit.Failed,
			Message: fmt.Sprintf("%d of %d looks give another decision than the recorded one", differ, len(all)),
			Next:    []string{next}}
	}
	return nil
}

// replayText decides again on a record, or on one within an answer of the API.
func replayText(cmd *cobra.Command, o options, text []byte) (replayed, error) {
	var answer contract.Cycle
	if json.Unmarshal(text, &answer) == nil && len(answer.Record) > 0 {
		text = answer.Record
	}
	r, err := scheduler.DecodeRecord(text)
	if err != nil {
		return replayed{}, err
	}
	again, err := scheduler.Replay(r, o.tuning.of(cmd, r.Policy))
	if err != nil {
		return replayed{}, err
	}
	return replayed{Pool: r.Pool, Identical: again.Difference == "", Difference: again.Difference, Recorded: r,
		Again: again}, nil
}

// concerns reports whether a look has a job waiting, running, or next.
func (x replayed) concerns(job string) bool {
	if slices.Contains(x.Again.Next, job) || slices.Contains(x.Recorded.NotMade, job) {
		return true
	}
	for _, t := range x.Again.Order {
		if t.ID == job {
			return true
		}
	}
	// What only runs concerns a look where it has to leave, or is waited for.
	for _, round := range x.Recorded.Rounds {
		for _, p := range round.Plans {
			for _, v := range p.Victims {
				if v.Job == job || x.Recorded.Jobs[v.Job] == job {
					return true
				}
			}
		}
		for _, w := range round.Awaited {
			if slices.ContainsFunc(w.Ends, func(id string) bool { return id == job || x.Recorded.Jobs[id] == job }) {
				return true
			}
		}
	}
	return false
}

func show(a *app.App, cmd *cobra.Command, o options, x replayed) error {
	return output.Text(a, cmd, x.Pool, x, func(w io.Writer) { write(w, o, x) })
}
