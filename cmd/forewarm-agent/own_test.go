package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// work is a job of a history, whatever its format.
type work struct {
	id, name, comment string
	user              string // empty: ada
	labels            map[string]string
	at                time.Time
	ends              time.Time // zero while it runs
	gpus              int
}

func (w work) owner() string { return cmp.Or(w.user, "ada") }

func (w work) unixTime() int64 { return w.at.Unix() }

func (w work) state() string {
	if w.ends.IsZero() {
		return "RUNNING"
	}
	return "COMPLETED"
}

// slurmTime is a time as Slurm prints it.
func slurmTime(t time.Time) string {
	if t.IsZero() {
		return "Unknown"
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

func (w work) seconds() string {
	if w.ends.IsZero() {
		return ""
	}
	return fmt.Sprint(int(w.ends.Sub(w.at).Seconds()))
}

// written is how each format says what it says of a job: with a header, then one line each.
var written = map[string]struct {
	header string
	row    func(work) string
}{
	"csv": {"job_id,submit_ts,start_ts,duration_s,gpus,status,name,comment\n", func(w work) string {
		return fmt.Sprintf("%s,%d,%d,%s,%d,%s,%s,%s\n", w.id, w.unixTime(), w.unixTime(), w.seconds(), w.gpus,
			w.state(),
			w.name, w.comment)
	}},
	"jsonl": {"", func(w work) string {
		row, _ := json.Marshal(map[string]any{"job_id": w.id, "submit_ts": w.unixTime(), "start_ts": w.unixTime(),
			"duration_s": json.RawMessage(jsonNumber(w.seconds())),
			"gpus":       w.gpus, "status": w.state(), "labels": w.labels, "name": "train"})
		return string(row) + "\n"
	}},
	"sacct": {"JobID|Submit|Start|End|ElapsedRaw|State|Account|Partition|ReqTRES|AllocTRES|User|JobName\n",
		func(w work) string {
			at, ends := slurmTime(w.at), slurmTime(w.ends)
			return fmt.Sprintf("%s|%s|%s|%s|%s|%s|lab|gpu||gres/gpu=%d|%s|%s\n", w.id, at, at, ends, w.seconds(),
				w.state(), w.gpus, w.owner(), w.name)
		}},
	"squeue": {"JOBID|SUBMIT_TIME|START_TIME|END_TIME|STATE|ACCOUNT|PARTITION|NODES|" +
		"TRES_ALLOC|TRES_PER_JOB|TRES_PER_NODE|USER|NAME|\n",
		func(w work) string {
			at, ends := slurmTime(w.at), slurmTime(w.ends)
			return fmt.Sprintf("%s|%s|%s|%s|%s|lab|gpu|1|gres/gpu=%d|N/A|N/A|%s|%s|\n", w.id, at, at, ends, w.state(),
				w.gpus, w.owner(), w.name)
		}},
}

func jsonNumber(text string) string {
	if text == "" {
		return "null"
	}
	return text
}

// peopleJobs are jobs of a week, one at every full hour, and one that has just begun.
func peopleJobs(now time.Time) (all []work) {
	for at := now.Add(-7 * 24 * time.Hour); at.Before(now); at = at.Add(time.Hour) {
		from := at.Add(5 * time.Minute)
		all = append(all, work{id: fmt.Sprint(from.Unix()), name: "train", at: from, ends: from.Add(30 * time.Minute),
			gpus: 4})
	}
	return append(all, work{id: "7", name: "train", at: now.Add(-time.Minute), gpus: 4})
}

// newPlaceholder is a job of Forewarm's, known by its name, comment and labels, or as people's when disguised.
func newPlaceholder(n int, at, ends time.Time, disguised bool) work {
	w := work{
		id: fmt.Sprintf("p%d", n), user: "forewarm", name: fmt.Sprintf("forewarm-%016x-x%d", n, at.Add(time.Hour).Unix()),
		comment: "forewarm:n=a&o=acme&p=slurm&t=t&y=a100",
		labels:  map[string]string{"forewarm.dev/role": "placeholder"}, at: at, ends: ends, gpus: 8,
	}
	if disguised {
		w.name, w.comment, w.labels = "eval", "", nil
	}
	return w
}

// listPlaceholders and heartbeats stand in the way of the last hours, the last of them now.
func listPlaceholders(now time.Time, disguised bool) (all []work) {
	for n := range 48 {
		at := now.Add(-time.Duration(48-n) * 10 * time.Minute)
		w := newPlaceholder(n, at, at.Add(9*time.Minute), disguised)
		if n%2 == 1 && !disguised {
			w.name = fmt.Sprintf("forewarm-%016x-%c", n, "hb"[n/2%2]) // of a cluster that is observed
		}
		if n > 44 {
			w.ends = time.Time{}
		}
		all = append(all, w)
	}
	return all
}

// planFrom writes a history and returns what the agent makes of it.
func (w *home) planFrom(format string, all []work) string {
	w.t.Helper()
	w.writeTable("history", written[format].header, all, written[format].row)
	text := fmt.Sprintf("pool: lab\nstate_dir: %s\nsources: [{kind: jobs, path: %s, format: %s}]\nplace: "+
		"{wait_worth: 500}\n",
		w.pathOf("state"), w.pathOf("history"), format)
	require.NoError(w.t, os.WriteFile(w.pathOf("agent.yaml"), []byte(text), 0o600))
	out, errs, code := w.runCommand(w.t.Context(), "run", "--dry-run", "--log-format", "json")
	require.Equal(w.t, exitOK, code, errs)
	require.NotContains(w.t, errs, "neither name nor comment")
	return out + forecastIn(errs)
}

func (w *home) writeTable(name, header string, all []work, row func(work) string) {
	w.t.Helper()
	var text strings.Builder
	text.WriteString(header)
	for _, each := range all {
		text.WriteString(row(each))
	}
	require.NoError(w.t, os.WriteFile(w.pathOf(name+".new"), []byte(text.String()), 0o600))
	require.NoError(w.t, os.Rename(w.pathOf(name+".new"), w.pathOf(name)))
}

// forecastIn finds the line that says what is expected and kept.
func forecastIn(log string) string {
	for line := range strings.Lines(log) {
		var said struct{ Msg string }
		if json.Unmarshal([]byte(line), &said) == nil && strings.Contains(said.Msg, "expects ") {
			return said.Msg
		}
	}
	return ""
}

// Placeholders among the customer's jobs change neither forecast nor plan, in any format.
func TestPlaceholdersAreNoDemand(t *testing.T) {
	t.Parallel()
	for format := range written {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newHome(t)
			without := w.planFrom(format, peopleJobs(w.clock.Now()))
			require.Contains(t, without, "expects ")
			with := w.planFrom(format, append(peopleJobs(w.clock.Now()), listPlaceholders(w.clock.Now(), false)...))
			require.Equal(t, without, with)
			taken := w.planFrom(format, append(peopleJobs(w.clock.Now()), listPlaceholders(w.clock.Now(), true)...))
			require.NotEqual(t, without, taken, "as jobs of people they would have counted")
		})
	}
}

// A history that cannot tell placeholders from jobs is told so, and how to mend it.
func TestAHistoryWithoutNamesIsToldSo(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig("")
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, 1, strings.Count(errs, "rows have neither name nor comment nor labels"), errs)
	_, errs, code = w.runCommand(t.Context(), "backtest")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "note: rows have neither name nor comment nor labels")
}

// rushJobs is a day in which a job of 2 GPUs comes in each of the first twelve minutes of every hour,
// as far as it has come.
func rushJobs(now time.Time) (all []work) {
	for n := range 25 * 12 {
		at := monday.Add(time.Duration(n/12-24)*time.Hour + time.Duration(n%12)*time.Minute)
		w := work{id: fmt.Sprint(n + 1), name: "train", at: at, ends: at.Add(20 * time.Minute), gpus: 2}
		if w.ends.After(now) {
			w.ends = time.Time{}
		}
		if !at.After(now) {
			all = append(all, w)
		}
	}
	return all
}

// The loop through the queue: what the agent has reserved comes back to it as placeholders of Slurm. Beside an agent
// whose queue shows only people's jobs, it asks for the same at every step.
func TestTheAgentDoesNotFeedOnItself(t *testing.T) {
	t.Parallel()
	fed, apart := newHome(t), newHome(t)
	for _, w := range []*home{fed, apart} {
		text := w.autoConfig() +
			fmt.Sprintf("pool: lab\nstate_dir: %s\nsources: [{kind: jobs, path: %s, format: squeue}]\nplace: "+
				"{wait_worth: 500}\n",
				w.pathOf("state"), w.pathOf("queue"))
		require.NoError(t, os.WriteFile(w.pathOf("agent.yaml"), []byte(text), 0o600))
	}
	shown := 0
	for range 6 {
		jobs := rushJobs(fed.clock.Now())
		var own []work
		for n, r := range fed.listReserved() {
			own = append(own, newPlaceholder(n, r.Start, time.Time{}, false))
		}
		shown += len(own)
		fed.writeTable("queue", written["squeue"].header, append(own, jobs...), written["squeue"].row)
		apart.writeTable("queue", written["squeue"].header, jobs, written["squeue"].row)
		var said []string
		for _, w := range []*home{fed, apart} {
			_, errs, code := w.runCommand(t.Context(), "run", "--once", "--log-format", "json")
			require.Equal(t, exitOK, code, errs)
			said = append(said, forecastIn(errs))
		}
		require.Contains(t, said[1], "expects ")
		require.Equal(t, said[1], said[0])
		require.Equal(t, wantedOf(apart.listReserved()), wantedOf(fed.listReserved()))
		fed.clock.Advance(3 * time.Minute)
		apart.clock.Advance(3 * time.Minute)
	}
	require.Positive(t, shown, "it was fed")
}

// wantedOf is what reservations ask for, without their ids.
func wantedOf(all []contract.Reservation) (wanted []string) {
	for _, r := range all {
		wanted = append(wanted, fmt.Sprintf("%d GPUs %s–%s", r.GPUs, r.Start, r.End))
	}
	return wanted
}

// Lines about what Forewarm does itself are no evidence: the model never sees them.
func TestLinesAboutOurOwnActsDoNotReachTheModel(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig(w.autoConfig() + "llm: {base_url: '" + w.llm + "', model: scripted-sim}\n")
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	w.appendFile("train.log", "slurmctld: job 9 forewarm-0123456789abcdef-x1795000000 will sweep 8 GPUs at ten\n"+
		`level=INFO msg="holds 8 GPUs at ten" program=forewarm-agent`+"\n")
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Zero(t, w.model.Calls())
	w.appendFile("train.log", "will sweep 8 GPUs at ten\n")
	w.clock.Advance(2 * time.Minute)
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Positive(t, w.model.Calls())
}
