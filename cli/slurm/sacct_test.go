package slurm

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/coldstart"
)

var header = strings.ReplaceAll(sacctColumns, ",", "|") + "|JobName\n"

func readRows(t require.TestingT, rows ...string) past {
	r := newSacctReader(nil, "")
	require.NoError(t, r.read(strings.NewReader(header+strings.Join(rows, "\n")+"\n")))
	return r.past
}

// A row has every column; what is left out has a usual value.
func row(id, times, nodes, tres, name string) string {
	return id + "|" + times + "|COMPLETED|gpu|" + nodes + "|" + tres + "|None|ada|" + name
}

func TestARow(t *testing.T) {
	t.Parallel()
	p := readRows(t, row("7", "100|160|200|300", "c[1-2]", "cpu=16,gres/gpu:a100=8,gres/gpu=8", "a|b"))
	require.Equal(t, []coldstart.Job{{ID: "7", Submit: 100, Ready: 160, Start: 200, End: 300, Nodes: []string{"c1", "c2"},
		GPUs: 8, Partition: "gpu", Model: "a100"}}, p.jobs)
	require.Zero(t, p.broken)
}

func TestJobsThatNeverRan(t *testing.T) {
	t.Parallel()
	p := readRows(t, row("1", "100|100|Unknown|Unknown", "None assigned", "", "waits"),
		row("2", "100|100|300|300", "None assigned", "", "cancelled while it waited"),
		row("3", "100|Unknown|None|300", "", "", "held for ever"),
		"4|100|100|900|Unknown|PENDING|gpu|c1||Priority|ada|an estimate of its start")
	require.Equal(t, 4, p.neverRan)
	require.Empty(t, p.jobs)
}

// An unknown word for a state, or for none, changes nothing.
func TestOtherLanguages(t *testing.T) {
	t.Parallel()
	p := readRows(t, "1|100|100|200|Unbekannt|LÄUFT|gpu|c1|gres/gpu=1|Keiner|ada|x")
	require.Len(t, p.jobs, 1)
	require.Zero(t, p.jobs[0].End)
	require.Equal(t, 1, p.running)
}

// The parts of a heterogeneous job start as one, and its nodes are theirs.
func TestHeterogeneousJobs(t *testing.T) {
	t.Parallel()
	p := readRows(t, row("5+0", "100|100|200|300", "c1", "gres/gpu=4", "x"),
		row("5+1", "100|100|200|300", "c2", "cpu=1", "x"),
		row("5+1", "100|100|200|300", "c2", "cpu=1", "x"))
	require.Len(t, p.jobs, 1)
	require.Equal(t, []string{"c1", "c2"}, p.jobs[0].Nodes)
	require.Equal(t, 4, p.jobs[0].GPUs)
}

// Tasks of an array are jobs of their own, a requeued job runs twice, and steps
// are none.
func TestArraysRequeuesAndSteps(t *testing.T) {
	t.Parallel()
	p := readRows(t, row("6_1", "100|100|200|300", "c1", "gres/gpu=1", "x"),
		row("6_2", "100|100|200|300", "c1", "gres/gpu=1", "x"),
		row("7", "100|100|200|250", "c1", "gres/gpu=1", "x"), row("7", "250|370|380|500", "c1", "gres/gpu=1", "x"),
		row("7.batch", "250|370|380|500", "c1", "cpu=1", "x"))
	require.Len(t, p.jobs, 4)
}

// A run that is told of twice, as when it spans two questions, is one; its end
// counts once it is known.
func TestRepeatedRuns(t *testing.T) {
	t.Parallel()
	p := readRows(t, row("7", "100|100|200|Unknown", "c1", "gres/gpu=1", "x"),
		row("7", "100|100|200|500", "c1", "gres/gpu=1", "x"))
	require.Len(t, p.jobs, 1)
	require.Equal(t, int64(500), p.jobs[0].End)
}

// Forewarm's own jobs are known by their name and, where it is said, their user.
func TestOwnJobs(t *testing.T) {
	t.Parallel()
	rows := header + row("1", "100|100|200|300", "c1", "cpu=1", "forewarm-00112233445566aa") + "\n" +
		row("2", "100|100|200|300", "c1", "cpu=1", "forewarmed") + "\n"
	for user, want := range map[string]bool{"": true, "ada": true, "forewarm": false} {
		r := newSacctReader(nil, user)
		require.NoError(t, r.read(strings.NewReader(rows)))
		require.Equal(t, want, r.past.jobs[0].Own, user)
		require.False(t, r.past.jobs[1].Own)
	}
}

// Where a cluster is asked, no name of another user is read: nobody else's job is
// Forewarm's, and no line break in a name makes a job.
func TestOwnJobsOfACluster(t *testing.T) {
	t.Parallel()
	require.NotContains(t, strings.ToLower(strings.Join(sacctArgs, " ")), nameColumn)
	require.Contains(t, ownArgs("forewarm"), "--user=forewarm")
	plain := strings.ReplaceAll(sacctColumns, ",", "|") + "\n"
	for _, id := range []string{"1", "2", "3"} {
		plain += strings.TrimSuffix(row(id, "100|100|200|300", "c1", "cpu=1", ""), "|") + "\n"
	}
	r := newSacctReader(nil, "ada")
	r.readOwn("1|200|forewarm-00112233445566aa-h\n2|200|train|forewarm-00112233445566aa\nodd\n3|999|forewarm-0\n")
	require.NoError(t, r.read(strings.NewReader(plain)))
	require.Equal(t, []bool{true, false, false}, []bool{r.past.jobs[0].Own, r.past.jobs[1].Own, r.past.jobs[2].Own})
	for user, want := range map[string]bool{"": false, "ada": true, "forewarm": false} {
		r := newSacctReader(nil, user)
		require.NoError(t, r.read(strings.NewReader(plain)))
		require.Equal(t, want, r.past.jobs[0].Own, "a file without names has Forewarm's user alone")
	}
}

func TestBrokenRows(t *testing.T) {
	t.Parallel()
	p := readRows(t, "1|2", row("1", "x|100|200|300", "c1", "", "x"), row("1", "100|100|2x|300", "c1", "", "x"),
		row("1", "100|100|200|150", "c1", "", "x"), row("1", "100|100|200|300", "c[1", "", "x"),
		row("1", "100|100|200|300", "c1", "gres/gpu=x", "x"), row("", "100|100|200|300", "c1", "", "x"),
		row("1", "2026-01-01T00:00:00|100|200|300", "c1", "", "x"))
	require.Equal(t, 8, p.broken)
	require.Equal(t, "row 1: has 2 columns, want 12", p.firstWrong)
	require.ErrorIs(t, newSacctReader(nil, "").read(strings.NewReader("")), errHeader)
	require.ErrorContains(t, newSacctReader(nil, "").read(strings.NewReader("JobID|Submit\n")), "NodeList")
}

// What is wrong with a row is said without what stands in it: in a shifted column
// that may be the name of a user.
func TestBrokenRowsTellNoNames(t *testing.T) {
	t.Parallel()
	for i := range strings.Count(header, "|") + 1 {
		cells := strings.Split(row("1", "100|100|200|300", "c1", "gres/gpu=1", "x"), "|")
		cells[i] = "1T-secret gres/gpu=secret["
		p := readRows(t, strings.Join(cells, "|"))
		require.NotContains(t, p.firstWrong, "secret")
		require.NotContains(t, p.firstWrong, "%!")
	}
	p := readRows(t, row("1", "secret|100|200|300", "c1", "", "x"))
	require.Equal(t, "row 1: its Submit is not known", p.firstWrong)
}

// A job over the change of summer time lasts as long as it did.
func TestSummerTime(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	r := newSacctReader(berlin, "")
	require.NoError(t, r.read(strings.NewReader(header+row("1",
		"2026-03-29T01:50:00|2026-03-29T01:50:00|2026-03-29T01:59:00|2026-03-29T03:01:00", "c1", "gres/gpu=1", "x"))))
	require.Equal(t, int64(120), r.past.jobs[0].End-r.past.jobs[0].Start)
}

// Whatever is in a file, every row is a run, a repeated one, a step, one that never
// ran, or broken; and every job that is read can be evaluated.
func TestAnyText(t *testing.T) {
	t.Parallel()
	cell := rapid.SampledFrom([]string{"", "1", "1+0", "1_2", "1.batch", "100", "200", "300", "Unknown", "None",
		"c1", "c[1-3]", "c[", "gres/gpu=2", "gres/gpu=-1", "forewarm-ab", "QOSLimit", "x|y", "2026-01-01T00:00:00",
		"99999999999999999999"})
	rapid.Check(t, func(t *rapid.T) {
		var rows []string
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			rows = append(rows, strings.Join(rapid.SliceOfN(cell, 12, 12).Draw(t, "cells"), "|"))
		}
		p := readRows(t, rows...)
		require.LessOrEqual(t, len(p.jobs)+p.neverRan+p.broken, p.rows)
		again := readRows(t, append(rows, rows...)...)
		require.Len(t, again.jobs, len(p.jobs))
		_, err := coldstart.Evaluate(p.jobs, coldstart.Assumptions{SuspendTime: 60, BootLimit: 60},
			coldstart.Period{Until: 1000}, coldstart.Options{WaitWorth: 8})
		require.NoError(t, err)
	})
}

// The report reads what the agent's history is documented to have, and JobName, which may
// have bars, stands last there.
func TestTheAgentsHistoryIsRead(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"../../docs/agent.md", "../../deploy/systemd/forewarm-history"} {
		text, err := os.ReadFile(at)
		require.NoError(t, err)
		command := regexp.MustCompile(`sacct --parsable2.* (?:-o |--format=)([A-Za-z,]+)`)
		lines := command.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, lines, at)
		for _, line := range lines {
			columns := strings.Split(line[1], ",")
			require.Equal(t, "JobName", columns[len(columns)-1], at)
			cells := map[string]string{"JobID": "7", "Submit": "100", "Eligible": "150", "Start": "200", "End": "300",
				"NodeList": "c1", "AllocTRES": "gres/gpu=2", "User": "ada", "JobName": "a|b"}
			row := make([]string, len(columns))
			for i, name := range columns {
				row[i] = cells[name]
			}
			r := newSacctReader(nil, "")
			require.NoError(t, r.read(strings.NewReader(strings.Join(columns, "|")+"\n"+strings.Join(row, "|")+"\n")), at)
			require.Equal(t, []coldstart.Job{{ID: "7", Submit: 100, Ready: 150, Start: 200, End: 300, GPUs: 2,
				Nodes: []string{"c1"}}}, r.past.jobs, at)
		}
	}
}

// What is inferred of jobs on real daemons is what their ResumeProgram was called
// for: jobs 1, 4, 5 and 7 waited for a boot, 8 for the node of 7, the others for
// nothing.
func TestRealHistory(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../testdata/slurm/real.sacct")
	require.NoError(t, err)
	r := newSacctReader(nil, "")
	require.NoError(t, r.read(bytes.NewReader(text)))
	first := r.past.jobs[0].Start
	got, err := coldstart.Evaluate(r.past.jobs, coldstart.Assumptions{SuspendTime: 20, BootLimit: 90},
		coldstart.Period{Begin: first, From: first, Until: r.past.lastEvent()}, coldstart.Options{WaitWorth: 8})
	require.NoError(t, err)
	s := got.Summary
	require.Equal(t, []int{8, 3, 4, 1, 0, 0}, []int{s.Starts, s.AtOnce, s.Boot.Starts, s.Resources.Starts,
		s.Limits.Starts, s.Priority.Starts})
	require.Equal(t, int64(27+20+42+22), s.Boot.Seconds)
	require.Zero(t, s.Refuted+s.Untold.Starts+s.Open)
}
