package slurm_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var fakeColumn = regexp.MustCompile(`^([A-Za-z-]+):(\d+)(.*)$`)

// formatRow prints one row as Slurm does for --Format: padded, or cut, to the widths.
func formatRow(format string, values map[string]string) string {
	text := ""
	for part := range strings.SplitSeq(format, ",") {
		column := fakeColumn.FindStringSubmatch(part)
		value, known := values[column[1]]
		if !known {
			return "squeue: error: Invalid job format specification: " + column[1]
		}
		if width, _ := strconv.Atoi(column[2]); width > 0 {
			value = fmt.Sprintf("%-*.*s", width, width, value)
		}
		text += value + column[3]
	}
	return text + "\n"
}

func formatSeconds(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return strconv.FormatInt(t.Unix(), 10)
}

func (w *world) runSqueue(options map[string]string) reply {
	id, one := options["jobs"]
	_, mine := options["me"]
	var rows strings.Builder
	found := false
	for _, j := range append(slices.Clone(w.Jobs), w.crowd()...) {
		hidden := j.User != "me" && (mine || strings.Contains(w.Elastic.Private, "jobs"))
		if one && strconv.Itoa(j.ID) != id || hidden {
			continue
		}
		found = true
		if w.Elastic.On {
			rows.WriteString(formatRow(options["Format"], w.elasticRow(j)))
			continue
		}
		rows.WriteString(formatRow(options["Format"], map[string]string{
			"JobID": strconv.Itoa(j.ID), "State": j.State, "Reason": "None",
			"PreemptTime": formatSeconds(j.Preempted, "N/A"),
			"SubmitTime":  formatSeconds(j.Submitted, "N/A"), "EndTime": formatSeconds(j.Ends, "N/A"),
			"NodeList": j.Node,
			"Name":     j.Name, "Comment": orNull(j.Comment),
		}))
	}
	out := rows.String()
	if one && !found {
		return complain("slurm_load_jobs error: Invalid job id specified")
	}
	if mine && w.takeFault("squeue truncated") || !mine && !one && w.takeFault("queue truncated") {
		out = out[:max(0, len(out)-5)]
	}
	return reply{out: out}
}

func orNull(text string) string {
	if text == "" {
		return "(null)"
	}
	return text
}

func (w *world) runSinfo(options map[string]string) reply {
	_, all := options["all"]
	if _, one := options["partition"]; all && one {
		return complain("sinfo: error: Conflicting options, -a and -p, specified. Please choose one or the other.")
	}
	out := ""
	for _, n := range w.Nodes {
		used := w.usedGPUs(n)
		if n.Hidden && used == 0 {
			continue
		}
		if partition, set := options["partition"]; set && partition != n.Partition {
			continue
		}
		if names, set := options["nodes"]; set && !slices.Contains(strings.Split(names, ","), n.Name) {
			continue
		}
		out += formatRow(options["Format"], map[string]string{
			"NodeList": n.Name, "PartitionName": n.Partition, "StateComplete": n.State,
			"Gres":     fmt.Sprintf("%s:%d", n.Gres, n.GPUs),
			"GresUsed": fmt.Sprintf("%s:%d(IDX:N/A)", n.Gres, used), "CPUsState": "0/4/0/4", "Reason": "none",
		})
	}
	return reply{out: out}
}
