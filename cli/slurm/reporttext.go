package slurm

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/core/coldstart"
	"github.com/forewarm/forewarm/core/phrase"
)

func (s shownReport) write(w io.Writer) {
	_, _ = fmt.Fprintf(w, "GPU starts from %s to %s (%s)\n", format.Time(s.From), format.Time(s.To),
		phrase.Span(s.To.Sub(s.From)))
	nodes := fmt.Sprintf("%s of %s on %s", format.Count(s.Starts.All, "start"), format.Count(s.Starts.GPUs, "GPU"),
		format.Count(s.Starts.Nodes, "node"))
	if s.Starts.StaysUp > 0 {
		nodes += fmt.Sprintf(" (%d always with power)", s.Starts.StaysUp)
	}
	_, _ = fmt.Fprintln(w, nodes)
	_, _ = fmt.Fprintln(w)
	s.writeStarts(w)
	s.writePolicies(w)
	s.writeAssumptions(w)
}

// writeStarts is the table of what happened.
func (s shownReport) writeStarts(w io.Writer) {
	rows := [][]string{{"WHAT HAPPENED", "STARTS", "SHARE", "P50", "P90", "GPU-HOURS WAITED"}}
	rows = append(rows, []string{"started at once", strconv.Itoa(s.Starts.AtOnce), s.share(s.Starts.AtOnce), "", "", ""})
	for _, line := range []struct {
		name  string
		waits shownWaits
	}{{"waited for a boot", s.Starts.Boot}, {"waited for busy nodes", s.Starts.Resources},
		{"waited for a limit", s.Starts.Limits}, {"waited for priority or else", s.Starts.Priority}} {
		rows = append(rows, s.waitRow(line.name, line.waits))
	}
	if s.Starts.Untold.Starts > 0 {
		rows = append(rows, s.waitRow("waited, too early to tell", s.Starts.Untold))
	}
	if s.Starts.Held.Starts > 0 {
		rows = append(rows, s.waitRow("held before (dependency)", s.Starts.Held))
	}
	writeRows(w, rows, 0)
	if s.Starts.AtOnce+s.Starts.Boot.Starts+s.Starts.others() > s.Starts.All {
		writeText(w, "", "A start that waited for a boot and for something else stands in both lines.")
	}
}

// others are the starts that waited for something else than a boot.
func (c startCounts) others() int {
	return c.Resources.Starts + c.Limits.Starts + c.Priority.Starts + c.Untold.Starts
}

func (s shownReport) waitRow(name string, x shownWaits) []string {
	row := []string{name, strconv.Itoa(x.Starts), s.share(x.Starts), "", "", ""}
	if x.Starts > 0 {
		row[3], row[4], row[5] = format.Seconds(x.P50), format.Seconds(x.P90), hours(x.GPUHours)
	}
	return row
}

func (s shownReport) share(n int) string {
	if s.Starts.All == 0 {
		return "-"
	}
	part := float64(n) / float64(s.Starts.All)
	return format.Percent(&part)
}

// hours has one decimal, or two where that would be nothing.
func hours(h float64) string {
	if h != 0 && h < 0.1 && h > -0.1 {
		return strconv.FormatFloat(h, 'f', 2, 64)
	}
	return strconv.FormatFloat(h, 'f', 1, 64)
}

// writePolicies is the table of what would have happened.
func (s shownReport) writePolicies(w io.Writer) {
	_, _ = fmt.Fprintln(w)
	if len(s.Policies) == 0 {
		writeText(w, "", "No start is known to have waited for nothing but a boot, so that nobody can say how long one "+
			"takes, and what warm nodes would have saved: give it with --boot.")
		return
	}
	rows := [][]string{{"REPLAYED", "WAITED", "P50", "P90", "GPU-HOURS", "IDLE NODE-H", "EXTRA", "COST"}}
	notes := []string{}
	for _, p := range s.shownPolicies() {
		name := p.name(s.Assumed.SuspendTime)
		rows = append(rows, p.row(name))
		if p.Note != "" {
			notes = append(notes, name+": "+p.Note)
		}
	}
	writeRows(w, rows, 0)
	for _, note := range notes {
		writeText(w, "", note)
	}
	writeText(w, "", "Idle and extra are node-hours that are paid for without work, boots included; extra and cost are "+
		"beyond nothing.")
	if s.Price == nil {
		writeText(w, "", "The price of a node is not known, so there is no cost: give it with --price.")
	}
}

func (p shownPolicy) name(suspend int64) string {
	switch p.Policy {
	case coldstart.Nothing:
		if suspend == coldstart.Never {
			return "nothing"
		}
		return "nothing (now " + format.Seconds(suspend) + ")"
	case coldstart.KeepAlive:
		return "SuspendTime " + format.Seconds(*p.Keep)
	case coldstart.Forecast:
		return "Forewarm's forecast"
	default:
		return "perfect foresight"
	}
}

func (p shownPolicy) row(name string) []string {
	row := []string{name, strconv.Itoa(p.Waits.Starts), "-", "-", hours(p.Waits.GPUHours),
		hours(p.IdleHours + p.BootHours), "-", "-"}
	if p.Waits.Starts > 0 {
		row[2], row[3] = format.Seconds(p.Waits.P50), format.Seconds(p.Waits.P90)
	}
	if p.Policy == coldstart.Nothing {
		return row
	}
	row[6] = hours(p.Extra)
	if p.Cost != nil {
		row[7] = dollars(p.Cost.Amount)
	}
	return row
}

// writeText writes a paragraph behind a mark.
func writeText(w io.Writer, mark, text string) {
	for i, line := range wrap(text, lineWidth-len(mark)) {
		if i > 0 {
			mark = strings.Repeat(" ", len(mark))
		}
		_, _ = fmt.Fprintln(w, mark+line)
	}
}

// writeAssumptions says what is inferred, and what would make it wrong.
func (s shownReport) writeAssumptions(w io.Writer) {
	_, _ = fmt.Fprintln(w, "\nInferred, for sacct does not say when a node had power:")
	for _, line := range s.assumptions() {
		writeText(w, "- ", line)
	}
}

func (s shownReport) assumptions() []string {
	from := "as given"
	if s.Assumed.Asked {
		from = "as the cluster says"
	}
	lines := []string{fmt.Sprintf("A node that nothing ran on for longer than SuspendTime (%s, %s) before a job could "+
		"start had no power.", suspendText(s.Assumed.SuspendTime), from),
		s.bootLine(),
		"The replay keeps every job on as many nodes as it had, for as long as it ran; nodes of one partition and model " +
			"can stand for each other. How well it fits, the row of nothing shows beside what happened."}
	if len(s.Policies) > 0 {
		lines = append(lines, fmt.Sprintf("The forecast knew only what had happened by then, and %s before the period; an "+
			"hour of a waiting job counts as %g idle node-hours.", learnedText(s.From.Sub(s.LearnedFrom)),
			s.Assumed.WaitWorth))
	}
	return append(lines, s.doubts()...)
}

func learnedText(d time.Duration) string {
	if d == 0 {
		return "no history"
	}
	return phrase.Span(d) + " of history"
}

func suspendText(seconds int64) string {
	if seconds == coldstart.Never {
		return "infinite but for some partitions"
	}
	return format.Seconds(seconds)
}

func (s shownReport) bootLine() string {
	limit := fmt.Sprintf("; what a job waited beyond %s, it waited for something else",
		format.Seconds(s.Assumed.ResumeTimeout))
	switch coldstart.Basis(s.Assumed.BootBasis) {
	case coldstart.Given:
		return "A boot takes " + format.Seconds(s.Assumed.Boot) + ", as given" + limit + "."
	case coldstart.Measured:
		return fmt.Sprintf("A boot takes %s, the median of %s that waited for nothing else%s.",
			format.Seconds(s.Assumed.Boot), format.Count(s.Assumed.BootsSeen, "start"), limit)
	default:
		return "How long a boot takes is not known" + limit + "."
	}
}

// doubts are what the numbers should be read with.
func (s shownReport) doubts() []string {
	lines := s.replayDoubt()
	add := func(n int, text string) {
		if n > 0 {
			lines = append(lines, text)
		}
	}
	add(s.Starts.Refuted, fmt.Sprintf("%s came at once on nodes that should have had no power, and stand under at once: "+
		"something that is not in this history kept the nodes up.", format.Count(s.Starts.Refuted, "start")))
	add(s.Starts.Untold.Starts, fmt.Sprintf("%s waited so early in the history that nobody can tell whether for a "+
		"boot: no replay has them.", format.Count(s.Starts.Untold.Starts, "start")))
	add(s.Starts.Open, fmt.Sprintf("%s got nodes at the end of the history that may still boot. sacct calls that a "+
		"start, and corrects it when the boot is over: it is counted nowhere until then.",
		format.Count(s.Starts.Open, "job")))
	add(s.Rows.Own, fmt.Sprintf("%s of Forewarm's own jobs kept nodes up, and count as nobody's work.",
		format.Count(s.Rows.Own, "run")))
	add(s.Rows.Broken, fmt.Sprintf("%s of the history cannot be read and %s left out; %s.",
		format.Count(s.Rows.Broken, "row"), format.IsOrAre(s.Rows.Broken), s.Rows.First))
	if s.Rows.Users == 1 || s.hides {
		lines = append(lines, fmt.Sprintf("The history has jobs of %s. If others' are hidden (PrivateData), their nodes "+
			"look unused, and too many starts look cold.", format.Count(s.Rows.Users, "user")))
	}
	return lines
}

func startsWait(n int) string {
	if n == 1 {
		return "1 start waits"
	}
	return format.Count(n, "start") + " wait"
}

// poorFit is by how much of what happened the replay of nothing may differ before
// the report says that it does.
const poorFit = 0.2

// replayDoubt says how far the replay is from what happened, if that is far.
func (s shownReport) replayDoubt() []string {
	if len(s.Policies) == 0 {
		return nil
	}
	seen, replayed := s.Starts.Boot.Starts, s.Policies[0].Waits.Starts
	if math.Abs(float64(seen-replayed)) <= poorFit*float64(seen)+1 {
		return nil
	}
	return []string{fmt.Sprintf("The replay fits poorly: with nothing changed %s for a boot, and not %d. What it says "+
		"of the others may be as far from the truth.", startsWait(replayed), seen)}
}
