package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// start is a job, or a task of an array, that began to work.
type start struct {
	key   string    // the same in all arms: the submission's name and the task
	id    string    // as Slurm's commands show it
	came  time.Time // when its user pressed return
	began time.Time // when the user's program ran
	from  time.Time // as Slurm's log of completed jobs says, to the second
	until time.Time
	nodes []string
	boot  bool      // one of its nodes was not there yet when it came
	ready time.Time // when the last of its nodes had booted
}

// wait is how long the user waited.
func (s start) wait() time.Duration { return max(0, s.began.Sub(s.came)) }

// uptime is from when to when Slurm wanted a node to have power.
type uptime struct{ up, booted, down time.Time }

// truth is what happened in a cluster, by what Slurm wrote and what the jobs noted
// themselves: nothing of it is Forewarm's.
type truth struct {
	starts     []start // by key
	nodes      map[string][]uptime
	heartbeats int       // jobs of Forewarm's user
	until      time.Time // up to then nodes are counted
}

// readTruth reads the truth of a cluster whose jobs are over. Its nodes are counted up to
// a time that is the same for all clusters.
func readTruth(c *cluster, until time.Time) (truth, error) {
	t := truth{until: until}
	power, err := os.Open(filepath.Join(c.dir, "power"))
	if err != nil {
		return t, fmt.Errorf("reading when nodes had power: %w", err)
	}
	defer func() { _ = power.Close() }()
	if t.nodes, err = parsePower(power, time.Now()); err != nil {
		return t, err
	}
	completed, err := os.Open(filepath.Join(c.dir, "completed"))
	if err != nil {
		return t, fmt.Errorf("reading Slurm's log of completed jobs: %w", err)
	}
	defer func() { _ = completed.Close() }()
	rows, err := parseCompleted(completed)
	if err != nil {
		return t, err
	}
	stamps, err := readStamps(filepath.Join(c.dir, "stamps"))
	if err != nil {
		return t, err
	}
	for _, row := range rows {
		if row.user == ours {
			t.heartbeats++
			continue
		}
		s, err := t.newStart(c, row, stamps)
		if err != nil {
			return t, err
		}
		t.starts = append(t.starts, s)
	}
	slices.SortFunc(t.starts, func(a, b start) int { return strings.Compare(a.key, b.key) })
	return t, nil
}

func (t *truth) newStart(c *cluster, row completedJob, stamps map[string]stamp) (start, error) {
	noted, found := stamps[row.job]
	came, known := c.submitted[row.name]
	if !found || !known || row.from.IsZero() {
		return start{}, fmt.Errorf("job %s of %s in %s was submitted (%v), noted its beginning (%v), began (%v)",
			row.job, row.name, c.name, known, found, !row.from.IsZero())
	}
	s := start{key: noted.key, id: noted.id, came: came, began: noted.at, from: row.from, until: row.until,
		nodes: row.nodes}
	s.boot = slices.ContainsFunc(s.nodes, func(node string) bool { return !t.wasUp(node, s.came, s.began) })
	s.ready = t.readyFor(s.nodes, s.began)
	return s, nil
}

// readyFor is when the last of the nodes had booted on which a job began then; zero for
// nodes of which no boot is known.
func (t *truth) readyFor(nodes []string, began time.Time) (ready time.Time) {
	for _, node := range nodes {
		for _, u := range t.nodes[node] {
			if u.booted.After(ready) && u.booted.Before(began) && u.down.After(began) {
				ready = u.booted
			}
		}
	}
	return ready
}

// wasUp says whether a node had booted when a job came, and was up until the job began.
func (t *truth) wasUp(node string, came, began time.Time) bool {
	return slices.ContainsFunc(t.nodes[node], func(u uptime) bool {
		return !u.booted.IsZero() && u.booted.Before(came) && u.down.After(began)
	})
}

// stamp is what a job noted itself.
type stamp struct {
	at      time.Time
	key, id string
}

// readStamps reads what jobs noted, by the number that Slurm's log has of them.
func readStamps(folder string) (map[string]stamp, error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading what jobs noted: %w", err)
	}
	found := map[string]stamp{}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name())) //nolint:gosec // our own jobs
		if err != nil {
			return nil, fmt.Errorf("reading what jobs noted: %w", err)
		}
		words := strings.Fields(string(text))
		if len(words) != 3 {
			return nil, fmt.Errorf("the job %s noted %q", file.Name(), text)
		}
		at, err := parseSeconds(words[0])
		if err != nil {
			return nil, err
		}
		found[words[1]] = stamp{at: at, key: file.Name(), id: words[2]}
	}
	return found, nil
}

// completedJob is a row of jobcomp/filetxt.
type completedJob struct {
	job, name, user string
	from, until     time.Time // from is zero for one that never began
	nodes           []string
}

// parseCompleted reads Slurm's log of completed jobs: words KEY=VALUE, a job a line.
func parseCompleted(in io.Reader) ([]completedJob, error) {
	var rows []completedJob
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := map[string]string{}
		for word := range strings.FieldsSeq(lines.Text()) {
			key, value, _ := strings.Cut(word, "=")
			words[key] = value
		}
		user, _, _ := strings.Cut(words["UserId"], "(")
		row := completedJob{job: words["JobId"], name: words["Name"], user: user,
			from: slurmTime(words["StartTime"]), until: slurmTime(words["EndTime"])}
		var err error
		if row.nodes, err = expandNodes(words["NodeList"]); err != nil || row.job == "" || user == "" {
			return nil, fmt.Errorf("a row of Slurm's log cannot be read: %q: %w", lines.Text(), err)
		}
		if len(row.nodes) == 0 {
			row.from = time.Time{}
		}
		rows = append(rows, row)
	}
	return rows, lines.Err()
}

// slurmTime is a time of the log, which is local; zero for none.
func slurmTime(text string) time.Time {
	if at, err := time.ParseInLocation("2006-01-02T15:04:05", text, time.Local); err == nil {
		return at
	}
	if at, err := parseSeconds(text); err == nil {
		return at
	}
	return time.Time{}
}

func parseSeconds(text string) (time.Time, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds < 1e9 {
		return time.Time{}, fmt.Errorf("%q is no time", text)
	}
	return time.UnixMicro(int64(seconds * 1e6)), nil
}

// expandNodes names the nodes of a list such as e[1-2,4].
func expandNodes(list string) ([]string, error) {
	if list == "" || list == "(null)" {
		return nil, nil
	}
	prefix, rest, ranged := strings.Cut(list, "[")
	if !ranged {
		return strings.Split(list, ","), nil
	}
	numbers, ended := strings.CutSuffix(rest, "]")
	if !ended {
		return nil, fmt.Errorf("%q is no list of nodes", list)
	}
	var nodes []string
	for part := range strings.SplitSeq(numbers, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || to < from || to-from > 1000 {
			return nil, fmt.Errorf("%q is no list of nodes", list)
		}
		for ; from <= to; from++ {
			nodes = append(nodes, prefix+strconv.Itoa(from))
		}
	}
	return nodes, nil
}

// parsePower reads when Slurm asked for nodes, had them and gave them up. One that has
// power now is counted until now.
func parsePower(in io.Reader, now time.Time) (map[string][]uptime, error) {
	nodes := map[string][]uptime{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 3 {
			return nil, fmt.Errorf("%q is no line of power", lines.Text())
		}
		at, err := parseSeconds(words[0])
		if err != nil {
			return nil, err
		}
		notePower(nodes, words[1], words[2], at)
	}
	for _, all := range nodes {
		if last := &all[len(all)-1]; last.down.IsZero() {
			last.down = now
		}
	}
	return nodes, lines.Err()
}

// notePower takes one line. That a node is asked for which has power changes nothing,
// and so for one that is given up and has none.
func notePower(nodes map[string][]uptime, node, word string, at time.Time) {
	all := nodes[node]
	open := len(all) > 0 && all[len(all)-1].down.IsZero()
	switch {
	case word == "up" && !open:
		nodes[node] = append(all, uptime{up: at})
	case word == "booted" && open:
		all[len(all)-1].booted = at
	case word == "down" && open:
		all[len(all)-1].down = at
	}
}
