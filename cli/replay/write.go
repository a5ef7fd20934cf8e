package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/scheduler"
)

// write tells of one look, as it was decided again.
func write(w io.Writer, o options, x replayed) {
	r := x.Recorded
	verdict := "identical"
	switch {
	case !x.Identical && o.tuning.isSet:
		verdict = "by this policy " + x.Difference
	case !x.Identical:
		verdict = "NOT IDENTICAL: " + x.Difference
	}
	order := string(r.Policy.Order)
	if o.tuning.order != "" {
		order = o.tuning.order + " instead of " + order
	}
	at := r.Now.UTC().Format(time.RFC3339Nano)
	p(w, "%s  pool %s  %s  %d wait, %d run on %d nodes  %s\n", at, r.Pool, order, len(x.Again.Order),
		len(r.State.Running), len(r.State.Nodes), verdict)
	if r.DryRun {
		p(w, "  nothing of it was carried out: somebody asked what would be decided\n")
	}
	writeOrder(w, o, x)
	for i, round := range x.Again.Rounds {
		if i > 0 {
			p(w, "  decided again, without those who were refused:\n")
		}
		writeRound(w, x, round)
		if !x.Identical && i < len(r.Rounds) {
			writeStarts(w, "  recorded: ", r.Rounds[i].Starts, "nobody starts")
		}
	}
	if len(x.Again.Next) > 0 {
		p(w, "  next, as GPUs become free: %s\n", strings.Join(x.Again.Next, ", "))
	}
	for _, id := range r.NotMade {
		p(w, "  nobody was told to leave for %s in the end: admission would not have let it start\n", id)
	}
	if r.Failed != "" {
		p(w, "  the look failed, so that not all of it may have been carried out: %s\n", r.Failed)
	}
	p(w, "\n")
}

// p writes to a buffer, which never fails.
func p(w io.Writer, text string, args ...any) { _, _ = fmt.Fprintf(w, text, args...) }

// writeOrder is a table of who waits, the first first. The job that is asked for is always in it.
func writeOrder(w io.Writer, o options, x replayed) {
	if len(x.Again.Order) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	p(t, "  TURN\tJOB\tCLASS\tGPUS\tWAITED\tLIMIT\tEXPECTED\tBAND\tSHARES\tOUTCOME\n")
	hidden := 0
	for i, j := range x.Again.Order {
		if o.most > 0 && i >= o.most && j.ID != o.job {
			hidden++
			continue
		}
		p(t, "  %d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%.2f × %.2f\t%s\n", i+1, j.ID, cmp.Or(j.Class, "-"), shapeOf(j.Request),
			length(j.Waited), length(j.MaxRuntime), length(j.Predicted), j.Band, j.TenantExcess, j.UserExcess,
			outcomeOf(x.Again, j))
	}
	_ = t.Flush()
	if hidden > 0 {
		p(w, "  %s more: --most 0 shows all\n", format.Count(hidden, "job"))
	}
}

func length(d time.Duration) string { return format.Duration(d.Round(time.Second)) }

func shapeOf(r placement.Request) string {
	switch {
	case r.Part != placement.Part{}:
		return "a part"
	case r.Shape.Nodes > 1:
		return fmt.Sprintf("%d on %d nodes", r.Shape.GPUs(), r.Shape.Nodes)
	}
	return fmt.Sprint(r.Shape.GPUs())
}

// outcomeOf is what became of a job that waits, in the last cycle in which anything did.
func outcomeOf(again scheduler.Replayed, j scheduler.Turn) string {
	var all []string
	for _, round := range again.Rounds {
		is := outcomeIn(round, j)
		if is == "" || slices.Contains(all, is) {
			continue
		}
		all = append(all, is)
	}
	if len(all) == 0 {
		return "waits behind others that ask for the same"
	}
	return strings.Join(all, "; then ")
}

func outcomeIn(round scheduler.Round, j scheduler.Turn) string {
	b := round.PutBack
	started := slices.ContainsFunc(round.Starts, func(s scheduler.Start) bool { return s.Job == j.ID })
	switch {
	case started && slices.Contains(b.Refused, j.ID):
		return "would start, and admission refused it"
	case started && slices.Contains(b.Unclaimed, j.ID):
		return "would claim what is reserved, and that could not be"
	case started:
		return "starts"
	case slices.Contains(b.LeftOut, j.ID):
		return "is left out, as admission refused one like it"
	}
	var parts []string
	for _, is := range round.Promised {
		if is.ID == j.ID {
			parts = append(parts, "is promised "+is.From.UTC().Format(time.RFC3339)+" on "+spotsOf(is.Spots))
		}
	}
	for _, is := range round.Blocked {
		if is.Job == j.ID || is.Request == j.Request && is.Limit == j.MaxRuntime {
			why := "waits: " + string(is.Blocker)
			if is.Need > 0 {
				why += fmt.Sprintf(" (needs %d, %d free of %d)", is.Need, is.Free, is.Usable)
			}
			parts = append(parts, why)
			break
		}
	}
	return strings.Join(parts, ", ")
}

func writeRound(w io.Writer, x replayed, round scheduler.Round) {
	writeStarts(w, "  ", round.Starts, "")
	for _, id := range round.Broken {
		p(w, "  the promise to %s cannot be kept: a node fails it, or a limit fell\n", id)
	}
	for _, plan := range round.Plans {
		for _, v := range plan.Victims {
			p(w, "  %s leaves for %s by %s, and loses %s of GPU time\n", nameOf(x, v.Job), plan.For,
				plan.LeaveBy.UTC().Format(time.RFC3339), length(v.Cost))
		}
	}
	for _, a := range round.Awaited {
		var ends []string
		for _, id := range a.Ends {
			ends = append(ends, nameOf(x, id))
		}
		p(w, "  nobody leaves for %s, as these should end soon: %s\n", a.For, strings.Join(ends, ", "))
	}
}

func writeStarts(w io.Writer, before string, all []scheduler.Start, none string) {
	for _, s := range all {
		claims := ""
		if s.Claims != "" {
			claims = ", of reservation " + s.Claims
		}
		p(w, "%s%s starts on %s, until %s at the latest%s\n", before, s.Job, spotsOf(s.Spots),
			s.Until.UTC().Format(time.RFC3339), claims)
	}
	if len(all) == 0 && none != "" {
		p(w, "%s%s\n", before, none)
	}
}

// nameOf is the id of the job that runs under one, or that itself where no job does.
func nameOf(x replayed, id string) string { return cmp.Or(x.Recorded.Jobs[id], id) }

func spotsOf(spots placement.Placement) string {
	var all []string
	for _, s := range spots {
		all = append(all, fmt.Sprintf("%s (%s)", s.Node, format.Count(s.GPUs, "GPU")))
	}
	return strings.Join(all, ", ")
}
