package jobs

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// logs is what of a job's output is shown.
type logs struct {
	follow, raw   bool
	rank, attempt int
	tail          size
	since, zone   string
}

// newLogsCommand is the command jobs logs.
func newLogsCommand(a *app.App) *cobra.Command {
	var l logs
	c := &cobra.Command{
		Use: "logs JOB", Short: "Show what a job wrote; with -f, follow what it writes", Args: flags.ExactArgs("JOB"),
		Long: `Show what the last attempt of a job wrote: its standard output on this one's, and its errors likewise. Of a job
on several nodes each node's comes whole, its lines marked with the node's rank.

With -f it is shown as it comes, until the job is over. That ends with 0, however the job ended: forewarm wait tells
that, too. -o jsonl has each piece with its time and its offset.

--since shows only what was written from then on, by the clocks of the nodes.

To a terminal go text, colours and what progress bars need; other control sequences of the job are left out, unless
--raw says so.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Filter == nil && (a.Flags.Output == output.JSON || a.Flags.Output == output.YAML) {
				return exit.UsageErrorf("forewarm jobs logs -o jsonl "+flags.Quote(args[0]), "-o %s is not for output, which "+
					"comes in pieces", a.Flags.Output)
			}
			api, id, err := names.JobID(a, cmd, args[0])
			if err != nil {
				return err
			}
			job, err := api.Job(cmd.Context(), id)
			if err != nil {
				return err
			}
			ranks, err := l.ranksOf(cmd, job)
			if err != nil {
				return err
			}
			if err := l.beginAt(a, cmd, ranks); err != nil {
				return err
			}
			f, err := newFollower(a, cmd, api, ranks, l.raw)
			if err != nil {
				return err
			}
			if f.next, f.last = max(1, job.Attempt), l.attempt; l.attempt > 0 {
				f.next = l.attempt
			}
			return l.show(f, job)
		},
	}
	c.Flags().BoolVarP(&l.follow, "follow", "f", false, "keep showing what it writes, until it is over")
	c.Flags().BoolVar(&l.raw, "raw", false, rawHelp)
	c.Flags().IntVar(&l.rank, "rank", -1, "only of the node of this rank (default all)")
	c.Flags().IntVar(&l.attempt, "attempt", 0, "of this attempt, counted from 1 (default the last one)")
	c.Flags().Var(&l.tail, "tail", "only so many bytes before the end, such as 64KiB, of each node")
	c.Flags().StringVar(&l.since, "since", "", "only what was written since: a time, or how long ago, such as 10m")
	c.Flags().StringVar(&l.zone, "tz", "", "time zone of --since (default the machine's)")
	c.MarkFlagsMutuallyExclusive("since", "tail")
	return c
}

// beginAt has what was written before --since left out.
func (l logs) beginAt(a *app.App, cmd *cobra.Command, ranks []reading) error {
	zone, err := a.Zone(cmd, l.zone)
	if err != nil {
		return err
	}
	since, err := when.ParsePast(cmd, "since", l.since, a.Clock.Now(), zone)
	for i := range ranks {
		ranks[i].since = since
	}
	return err
}

// ranksOf are the nodes whose output is wanted.
func (l logs) ranksOf(cmd *cobra.Command, x contract.Job) ([]reading, error) {
	if l.attempt < 0 || l.attempt > x.Attempt && (x.Attempt > 0 || !l.follow) && l.attempt > 0 {
		return nil, exit.UsageErrorf("forewarm jobs show "+x.ID, "--attempt %d: %s has had %s", l.attempt, x.ID,
			format.Count(x.Attempt, "attempt"))
	}
	ranks := allRanks(x)
	if cmd.Flags().Changed("rank") {
		if l.rank < 0 || l.rank >= len(ranks) {
			return nil, exit.UsageErrorf("forewarm jobs show "+x.ID, "--rank %d: %s is on %s, counted from 0", l.rank, x.ID,
				format.Count(len(ranks), "node"))
		}
		ranks = ranks[l.rank : l.rank+1]
	}
	for i := range ranks {
		ranks[i].tail = int64(l.tail)
	}
	return ranks, nil
}

// show shows what is wanted.
func (l logs) show(f *follower, x contract.Job) error {
	defer f.out.uncolour()
	ctx := f.cmd.Context()
	switch {
	case l.follow:
		_, err := f.follow(ctx, x)
		return err
	case x.Attempt == 0:
		when := "has not run yet"
		if !x.EndedAt.IsZero() {
			when = "never ran"
		}
		f.app.Say(f.cmd, "%s is %s: it %s.", x.ID, x.State, when)
		return nil
	}
	for i := range f.ranks {
		from := client.OutputQuery{Attempt: f.next, Rank: f.ranks[i].rank, Tail: f.ranks[i].tail,
			Since: f.ranks[i].since}
		for piece, err := range f.streams.JobOutput(ctx, x.ID, from) {
			if err != nil {
				return err
			}
			if err := f.out.show(piece); err != nil {
				return err
			}
		}
		if err := f.out.finish(); err != nil {
			return err
		}
	}
	return nil
}

// size is a flag that reads a number of bytes, such as 4096 or 64KiB.
type size int64

// sizeUnits are the units of sizes, longer names before those that they end in.
var sizeUnits = []struct {
	name string
	of   float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30},
	{"", 1}}

// Set reads the text form.
func (s *size) Set(text string) error {
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n*unit.of >= 1) || n*unit.of > 1<<40 {
			break
		}
		*s = size(math.Round(n * unit.of))
		return nil
	}
	return errors.New("must be a number of bytes, such as 64KiB")
}

// String writes the number of bytes; none for zero.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type names the flag's value in help texts.
func (*size) Type() string { return "bytes" }
