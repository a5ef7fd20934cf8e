package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func second(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

// The same seed makes the same week, whose jobs lie within the day and fit the cluster.
func TestTheWeekIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	line := (options{day: 24 * time.Minute, boot: 20 * time.Second}).newTimeline(second(0))
	week := makeWeek(1, 0, line.monday)
	require.Equal(t, week, makeWeek(1, 0, line.monday))
	require.NotEqual(t, week, makeWeek(2, 0, line.monday))
	kinds, names := map[kind]int{}, map[string]bool{}
	for _, s := range week {
		kinds[s.kind]++
		names[s.name] = true
		hour := s.at.Sub(s.at.Truncate(24 * time.Hour))
		require.True(t, hour >= opening && hour < closing, s)
		require.True(t, s.gpus >= 1 && s.gpus <= perNode && s.tasks >= 1 && s.nodes >= 1 && s.length > 0, s)
	}
	require.Len(t, names, len(week))
	require.Len(t, kinds, 5)
}

// A boot is five minutes of the week, and nights are left out.
func TestTheTimeline(t *testing.T) {
	t.Parallel()
	line := (options{day: 10 * time.Minute, boot: 20 * time.Second}).newTimeline(second(0))
	require.Equal(t, usualBoot, line.ofWeek(20*time.Second))
	before := line.monday.Add(8*time.Hour + 45*time.Minute)
	require.Equal(t, before, line.weekAt(second(-100)), "it stands still before the run")
	require.Equal(t, line.monday.Add(opening), line.weekAt(second(60)))
	require.Equal(t, before.AddDate(0, 0, 2), line.weekAt(second(1200)))
	for _, at := range []int{0, 59, 600, 1000, 1799} {
		require.Equal(t, second(at), line.machineAt(line.weekAt(second(at))))
	}
}

// A row of Slurm 22.05, and what else the log may hold.
func TestSlurmsLogIsRead(t *testing.T) {
	t.Parallel()
	rows, err := parseCompleted(strings.NewReader(
		"JobId=7 UserId=daemon(1) GroupId=daemon(1) Name=w0-003-gang JobState=COMPLETED Partition=elastic TimeLimit=60 " +
			"StartTime=2026-11-23T22:10:01 EndTime=2026-11-23T22:10:31 NodeList=e[1-2,5] NodeCnt=3 ProcCnt=3 WorkDir=/ \n" +
			"JobId=8 UserId=nobody(65534) Name=x JobState=CANCELLED StartTime=2026-11-23T22:10:01 " +
			"EndTime=2026-11-23T22:10:01 NodeList=(null)\n"))
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, []string{"e1", "e2", "e5"}, rows[0].nodes)
	require.Equal(t, "daemon", rows[0].user)
	require.Equal(t, 30*time.Second, rows[0].until.Sub(rows[0].from))
	require.True(t, rows[1].from.IsZero(), "it never began")
	for _, broken := range []string{"JobId=1 UserId=a(1) NodeList=e[1-x]", "nonsense",
		"JobId=1 UserId=a(1) NodeList=e[1-9999999]"} {
		_, err = parseCompleted(strings.NewReader(broken))
		require.Error(t, err, broken)
	}
}

// A node that is asked for twice has power once, and one that is up is counted until now.
func TestPowerIsRead(t *testing.T) {
	t.Parallel()
	nodes, err := parsePower(strings.NewReader("1800000000.5 e1 up\n1800000001 e1 up\n1800000020 e1 booted\n"+
		"1800000060 e1 down\n1800000061 e1 down\n1800000090 e2 up\n"), second(100))
	require.NoError(t, err)
	require.Equal(t, []uptime{{second(0).Add(500 * time.Millisecond), second(20), second(60)}}, nodes["e1"])
	require.Equal(t, []uptime{{up: second(90), down: second(100)}}, nodes["e2"])
	_, err = parsePower(strings.NewReader("yesterday e1 up\n"), second(0))
	require.Error(t, err)
}

// Work that overlaps on a node counts once, and what is left of its time with power is idle.
func TestOverhead(t *testing.T) {
	t.Parallel()
	made := truth{
		nodes: map[string][]uptime{"e1": {{second(0), second(20), second(150)}},
			"e2": {{second(0), second(20), second(50)}}},
		until: second(100),
		starts: []start{
			{from: second(20), until: second(40), nodes: []string{"e1", "e2"}},
			{from: second(30), until: second(50), nodes: []string{"e1"}},
			{from: second(90), until: second(170), nodes: []string{"e1"}},
		},
	}
	require.Equal(t, 60*time.Second, made.worked())
	require.InDelta(t, 150, made.overheadPercent(), 1e-9)
}

// What Forewarm reported is held against what was.
func TestJudging(t *testing.T) {
	t.Parallel()
	made := truth{starts: []start{
		{key: "warm", id: "1", came: second(0), began: second(1), nodes: []string{"e1", "e2"}},
		{key: "cold", id: "2", came: second(0), began: second(30), nodes: []string{"e3"}, boot: true},
		{key: "elsewhere", id: "3", came: second(0), began: second(1), nodes: []string{"e4"}},
		{key: "unseen", id: "4", came: second(0), began: second(1), nodes: []string{"e4"}},
		{key: "lucky", id: "5_1", came: second(0), began: second(1), nodes: []string{"e4"}},
	}}
	v := judgeReports(made, []claimed{{"1", []string{"e2", "e1"}}, {"2", []string{"e3"}}, {"3", []string{"e5"}},
		{"5_1", nil}, {"9", []string{"e1"}}})
	require.Equal(t, []string{"unseen (job 4)"}, v.missed)
	require.Len(t, v.falseClaims, 3)
	require.Len(t, v.warm, 1)
	require.Equal(t, "warm", v.warm[0].key)

	late := made.starts[0]
	late.began = second(3)
	found, missing := delayed([]start{late, made.starts[1]}, []start{made.starts[0], made.starts[2]})
	require.Len(t, found, 1)
	require.Equal(t, 3*time.Second, found[0].with.wait())
	require.Equal(t, []string{"cold", "elsewhere"}, missing)
	require.Equal(t, 1, countBlocked(found))
	found[0].with.boot = true
	require.Zero(t, countBlocked(found))
	require.Equal(t, 1, countLucky(found))
}

// A job whose twin found the node of an earlier one still up is told when that ended in each arm.
func TestLuckIsExplained(t *testing.T) {
	t.Parallel()
	twin := start{key: "b", came: second(100), began: second(100), from: second(100), nodes: []string{"e1"}}
	cold := []start{{key: "a", from: second(40), until: second(90), nodes: []string{"e1"}},
		{key: "old", from: second(0), until: second(30), nodes: []string{"e1"}}, twin}
	with := []start{{key: "a", from: second(10), until: second(60), nodes: []string{"e2"}},
		{key: "b", came: second(100), began: second(120), boot: true, nodes: []string{"e3"}}}
	found, _ := delayed(with, cold)
	require.Len(t, found, 1)
	require.Contains(t, found[0].explainLuck(with, cold),
		"after a, which ended 10 s before it came, and 40 s in this arm")
	found[0].without.boot = true
	require.Empty(t, found[0].explainLuck(with, cold))
}

// Of two jobs whose nodes booted equally fast one may be launched later, by the round of
// its slurmctld. A boot that took longer, or a launch that missed a round, is something else.
func TestLaunchRounds(t *testing.T) {
	t.Parallel()
	cold := start{key: "a", came: second(0), ready: second(22), began: second(44), boot: true}
	for name, test := range map[string]struct {
		ready, began int
		round        int
	}{
		"by the round":       {22, 46, 1},
		"by its boot":        {24, 46, 0},
		"missed one":         {22, 54, 0},
		"not later":          {22, 45, 0},
		"a boot as its own":  {23, 50, 1},
		"ready just before":  {22, 53, 1},
		"its node was later": {40, 46, 0},
	} {
		with := start{key: "a", came: second(0), ready: second(test.ready), began: second(test.began), boot: true}
		found, _ := delayed([]start{with}, []start{cold})
		require.Equal(t, test.round, countByRound(found), name)
	}
	up := truth{nodes: map[string][]uptime{
		"e1": {{booted: second(20), down: second(90)}, {booted: second(120), down: second(200)}},
		"e2": {{booted: second(10), down: second(30)}, {booted: second(25), down: second(90)}},
	}}
	require.Equal(t, second(25), up.readyFor([]string{"e1", "e2"}, second(50)))
	require.True(t, up.readyFor([]string{"e3"}, second(50)).IsZero())
}
