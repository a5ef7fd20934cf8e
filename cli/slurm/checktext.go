package slurm

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// lineWidth is how wide text is written: that of the smallest terminal.
const lineWidth = 80

// writeItem writes a title and a text beside it, in lines of that width.
func writeItem(w io.Writer, title, text string) {
	const indent = 12
	for i, line := range wrap(text, lineWidth-indent) {
		if i > 0 {
			title = ""
		}
		_, _ = fmt.Fprintf(w, "%-*s%s\n", indent, title, line)
	}
}

// wrap cuts a text into lines at its spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func (c check) write(w io.Writer) {
	writeItem(w, "Cluster", fmt.Sprintf("%s, %s; seen by user %s, %s", c.Cluster, c.Version, c.User, c.levelText()))
	writeItem(w, "Power", c.powerText())
	if stay := c.excludedText(); stay != "" {
		writeItem(w, "", stay)
	}
	writeItem(w, "Preemption", fmt.Sprintf("%s, %s", cmp.Or(c.Preemption.Type, "none"), cmp.Or(c.Preemption.Mode, "off")))
	writeItem(w, "Placement", fmt.Sprintf("%s, %s; %s", c.Placement.Selects,
		cmp.Or(c.Placement.Parameters, "no parameters"), cmp.Or(c.Placement.Topology, "topology/none")))
	if useless := c.coldPartitions(); len(useless) > 0 {
		writeItem(w, "", "a placeholder that holds GPUs makes nobody start sooner in "+strings.Join(useless, ", ")+
			": Slurm boots a cold node rather than preempt it")
	}
	writeItem(w, "Accounting", c.accountingText())
	writeItem(w, "Hidden", c.hiddenText())
	c.writePartitions(w)
	_, _ = fmt.Fprintln(w)
	writeItem(w, "Way", c.wayText())
	c.writeCosts(w)
	c.writeMissing(w)
}

func (c check) levelText() string {
	switch c.AdminLevel {
	case "administrator":
		return "an Administrator"
	case "operator":
		return "an Operator"
	case "none":
		return "an ordinary user"
	default:
		return "whose rights are not known"
	}
}

func (c check) powerText() string {
	switch {
	case !c.Power.Saving:
		return "nodes always have power: no SuspendProgram, or no ResumeProgram"
	case c.Power.SuspendTime == nil:
		return "SuspendTime is infinite: nodes lose power only where a partition has a time of its own"
	}
	text := "a node unused for " + format.Seconds(*c.Power.SuspendTime) + " loses power (SuspendTime)"
	if c.Power.ResumeTimeout != nil {
		text += "; a boot may take " + format.Seconds(*c.Power.ResumeTimeout) + " (ResumeTimeout)"
	}
	return text
}

// excludedText says which nodes never lose power.
func (c check) excludedText() string {
	var all []string
	if c.Power.ExcludedNodes != "" {
		all = append(all, "SuspendExcNodes="+c.Power.ExcludedNodes)
	}
	if c.Power.ExcludedParts != "" {
		all = append(all, "SuspendExcParts="+c.Power.ExcludedParts)
	}
	if len(all) == 0 {
		return ""
	}
	return "kept up by " + strings.Join(all, " and ")
}

func (c check) accountingText() string {
	switch {
	case c.Accounting.Type == accountingNone:
		return "none"
	case !c.Accounting.Answers:
		return c.Accounting.Type + ", which does not answer"
	case !c.Accounting.GPUs:
		return c.Accounting.Type + ", without GPUs"
	default:
		return c.Accounting.Type + ", with GPUs"
	}
}

// coldPartitions are those whose nodes may lose power.
func (c check) coldPartitions() []string {
	var names []string
	for _, p := range c.Partitions {
		if p.Beats != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

func (c check) hiddenText() string {
	if len(c.PrivateData) == 0 {
		return "nothing by PrivateData"
	}
	text := "PrivateData=" + strings.Join(c.PrivateData, ",")
	if slices.Contains(c.PrivateData, "cloud") {
		text += " (cloud shows nodes without power)"
	}
	return text
}

func (c check) writePartitions(w io.Writer) {
	if len(c.Partitions) == 0 {
		return
	}
	rows := [][]string{{"PARTITION", "GPU NODES", "EACH", "CLOUD", "POWER DOWN", "OFF NOW", "DOWN", "HIDDEN", "TIER"}}
	for _, p := range c.Partitions {
		rows = append(rows, []string{p.Name, strconv.Itoa(p.Nodes), format.OrDash(strings.Join(p.GPUs, ", ")),
			strconv.Itoa(p.Cloud), strconv.Itoa(len(p.PowersDown)), strconv.Itoa(p.Dark), strconv.Itoa(len(p.Broken)),
			strconv.Itoa(p.Hidden), format.OrDash(p.Tier)})
	}
	_, _ = fmt.Fprintln(w)
	writeRows(w, rows, 0, 2)
}

// writeRows writes a table whose columns are to the right but for those named.
func writeRows(w io.Writer, rows [][]string, left ...int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if slices.Contains(left, i) {
				b.WriteString(cell + pad + "  ")
			} else {
				b.WriteString(pad + cell + "  ")
			}
		}
		_, _ = fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

func (c check) wayText() string {
	name := map[string]string{byHeartbeats: "heartbeat jobs of an ordinary user", byPowerUp: "POWER_UP",
		byNothing: "none"}[c.Way.Name]
	return name + ": " + strings.Join(c.Way.Why, "; ")
}

// writeCosts says what it takes to keep one node warm for an hour: heartbeats and
// money.
func (c check) writeCosts(w io.Writer) {
	if c.Way.Name == byNothing {
		return
	}
	c.writeEach(w, "Heartbeats", func(p partition) string {
		return fmt.Sprintf("one each %s while a node is idle: %d for an hour of a warm node",
			format.Seconds(beatEvery(*p.SuspendTime)), *p.Beats)
	})
	c.writeEach(w, "Price", func(p partition) string {
		if p.Cost == nil {
			return "not known, give it with --price or in the configuration's offers"
		}
		return format.Money(*p.Cost) + " for an hour of a warm node"
	})
}

// writeEach writes what holds for partitions whose nodes power down, once for all
// that agree.
func (c check) writeEach(w io.Writer, title string, text func(partition) string) {
	names, order := map[string][]string{}, []string{}
	for _, p := range c.Partitions {
		if p.Beats == nil {
			continue
		}
		line := text(p)
		if names[line] == nil {
			order = append(order, line)
		}
		names[line] = append(names[line], p.Name)
	}
	for i, line := range order {
		if i > 0 {
			title = ""
		}
		writeItem(w, title, strings.Join(names[line], ", ")+": "+line)
	}
}

func (c check) writeMissing(w io.Writer) {
	if len(c.Missing) == 0 {
		writeItem(w, "Missing", "nothing")
		return
	}
	for _, m := range c.Missing {
		title := "Missing"
		if !m.Needed {
			title = "Better"
		}
		_, _ = fmt.Fprintln(w)
		writeItem(w, title, m.What+": "+m.Meanings)
		_, _ = fmt.Fprintf(w, "%12s%s:  %s\n", "", m.In, m.Line)
	}
}

// dollars is an amount for people, which may be saved.
func dollars(amount string) string {
	if less, saved := strings.CutPrefix(amount, "-"); saved {
		return "-" + dollars(less)
	}
	return format.Money(contract.Money{Amount: amount, Currency: contract.Currency})
}
