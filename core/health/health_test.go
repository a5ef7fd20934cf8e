package health_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/health"
)

var begin = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

// look is one step of a table test: what is read at a second, and what follows.
type look struct {
	at    int
	read  health.Reading
	missd bool
	want  health.State
}

func xids(codes ...int) health.Reading {
	var r health.Reading
	for _, code := range codes {
		r.XIDs = append(r.XIDs, health.XID{Code: code, Count: 1})
	}
	return r
}

func TestLooks(t *testing.T) {
	t.Parallel()
	lost, reset := health.Reading{Lost: true}, health.Reading{Recovery: "reset"}
	failed, pending := health.Reading{RemapFailed: true}, health.Reading{RemapPending: true}
	for name, looks := range map[string][]look{
		"nothing speaks against it": {{at: 0, want: health.Healthy}, {at: 10, read: health.Reading{Recovery: "none"},
			want: health.Healthy}},
		"a lost GPU counts at once and stays": {{at: 0, read: lost, want: health.Unhealthy},
			{at: 3600, want: health.Unhealthy}},
		"a burn-in that failed twice counts at once and stays": {
			{at: 0, read: health.Reading{BurnIn: "a word differs"}, want: health.Unhealthy}, {at: 3600, want: health.Unhealthy}},
		"the driver's word counts at once": {{at: 0, read: reset, want: health.Unhealthy},
			{at: 10, want: health.Unhealthy}},
		"a fatal XID needs a second look": {{at: 0, want: health.Healthy}, {at: 10, read: xids(119), want: health.Healthy},
			{at: 19, want: health.Healthy}, {at: 20, want: health.Unhealthy}, {at: 90000, want: health.Unhealthy}},
		"a flag that is gone at the second look was a mistake": {{at: 0, read: failed, want: health.Unknown},
			{at: 10, want: health.Healthy}, {at: 20, want: health.Healthy}},
		"a flag that two looks find": {{at: 0, read: failed, want: health.Unknown},
			{at: 5, read: failed, want: health.Unknown}, {at: 10, read: failed, want: health.Unhealthy},
			{at: 20, want: health.Unhealthy}},
		"a pending remap, and ten quiet minutes": {{at: 0, read: pending, want: health.Degraded},
			{at: 60, want: health.Degraded}, {at: 599, want: health.Degraded}, {at: 600, want: health.Healthy}},
		"a program's fault": {{at: 0, read: xids(13, 94, 43), want: health.Healthy}},
		"a program's fault again on this GPU alone": {{at: 0, read: xids(31), want: health.Healthy},
			{at: 3600, read: xids(31), want: health.Degraded}},
		"a program's fault again two days later": {{at: 0, read: xids(31), want: health.Healthy},
			{at: 172800, read: xids(31), want: health.Healthy}},
		"unknown XIDs never take it out of use": {{at: 0, read: xids(999), want: health.Healthy},
			{at: 10, want: health.Healthy}},
		"many XIDs that mean little": {{at: 0, read: health.Reading{XIDs: []health.XID{{Code: 92, Count: 9}}},
			want: health.Healthy}, {at: 60, read: xids(999), want: health.Degraded}},
		"three missed looks": {{at: 0, want: health.Healthy}, {at: 10, missd: true, want: health.Healthy},
			{at: 20, missd: true, want: health.Healthy}, {at: 30, missd: true, want: health.Unknown},
			{at: 40, want: health.Healthy}},
		"what is unhealthy is not unknown": {{at: 0, read: lost, want: health.Unhealthy},
			{at: 10, missd: true, want: health.Unhealthy}, {at: 20, missd: true, want: health.Unhealthy},
			{at: 30, missd: true, want: health.Unhealthy}},
		"no look at all": {{at: 0, missd: true, want: health.Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var track health.Track
			for i, l := range looks {
				if l.missd {
					track = track.Miss(health.Policy{}, at(l.at))
				} else {
					track = track.Next(l.read, health.Policy{}, at(l.at))
				}
				require.Equal(t, l.want, track.State, "look %d: %+v", i, track)
			}
		})
	}
}

func TestASlowdownThatGoesOn(t *testing.T) {
	t.Parallel()
	var track health.Track
	for i := range 6 {
		require.NotEqual(t, health.Unhealthy, track.State)
		track = track.Next(health.Reading{Slowdown: true}, health.Policy{}, at(10*i))
	}
	track = track.Next(health.Reading{Slowdown: true}, health.Policy{}, at(60))
	require.Equal(t, health.Unhealthy, track.State)
	require.Equal(t, health.RuleSlowdown, track.Evidence()[0].Rule)
}

func TestClearIsAWayOut(t *testing.T) {
	t.Parallel()
	track := health.Track{}.Next(health.Reading{Lost: true}, health.Policy{}, at(0)).Clear(at(5))
	require.Equal(t, health.Unknown, track.State)
	track = track.Next(health.Reading{}, health.Policy{}, at(10))
	require.Equal(t, health.Healthy, track.State)
	require.Equal(t, at(10), track.Since)
	require.Empty(t, track.Evidence())
}

// TestTheTableOfXIDs: each XID of the table leads to the state that its decision says.
func TestTheTableOfXIDs(t *testing.T) {
	t.Parallel()
	leads := map[health.Decision]health.State{health.AppFault: health.Healthy, health.Count: health.Healthy,
		health.Ignore: health.Healthy, health.ResetLater: health.Degraded, health.Reset: health.Unhealthy,
		health.Replace: health.Unhealthy}
	for code, want := range map[int]health.Decision{13: health.AppFault, 31: health.AppFault, 94: health.AppFault,
		63: health.ResetLater, 48: health.Reset, 64: health.Reset, 74: health.Reset, 95: health.Reset, 119: health.Reset,
		150: health.Reset, 79: health.Replace, 54: health.Replace, 142: health.Replace, 151: health.Replace,
		92: health.Count, 137: health.Count, 45: health.Ignore, 154: health.Ignore, 12345: health.Count} {
		require.Equal(t, want, health.Policy{}.Decide(code), code)
		track := health.Track{}.Next(xids(code), health.Policy{}, at(0)).Next(health.Reading{}, health.Policy{}, at(10))
		require.Equal(t, leads[want], track.State, code)
		if track.State == health.Unhealthy {
			require.Equal(t, fmt.Sprintf("xid_%d", code), track.Evidence()[0].Rule)
			require.Contains(t, track.Evidence()[0].Detail, fmt.Sprintf("XID %d: ", code))
		}
	}
}

func TestAPolicyDecidesOtherwise(t *testing.T) {
	t.Parallel()
	p := health.Policy{XIDs: map[int]health.Decision{94: health.Reset, 79: health.Ignore}}
	require.NoError(t, p.Check())
	next := func(code int) health.State {
		return health.Track{}.Next(xids(code), p, at(0)).Next(health.Reading{}, p, at(10)).State
	}
	require.Equal(t, health.Unhealthy, next(94))
	require.Equal(t, health.Healthy, next(79))
	require.ErrorContains(t, health.Policy{XIDs: map[int]health.Decision{7: "explode"}}.Check(), `xids: 7: "explode"`)
	require.Error(t, health.Policy{XIDs: map[int]health.Decision{0: health.Reset}}.Check())
}

func TestWhatComesOnSeveralGPUsIsSoftware(t *testing.T) {
	t.Parallel()
	all := health.MarkShared(map[string]health.Reading{"a": xids(31, 79), "b": xids(31, 79), "c": xids(13)},
		health.Policy{})
	require.True(t, all["a"].XIDs[0].Shared)
	require.False(t, all["a"].XIDs[1].Shared, "79 is no program's fault, wherever it comes")
	require.False(t, all["c"].XIDs[0].Shared)
	track := health.Track{}.Next(all["a"], health.Policy{}, at(0)).Next(all["b"], health.Policy{}, at(10))
	require.NotContains(t, track.Faults, "xid_31")
}

// A suspicion keeps no GPU degraded by what has been quiet since: there would be no evidence.
func TestASuspicionDoesNotProlongWhatIsQuiet(t *testing.T) {
	t.Parallel()
	track := health.Track{}.Next(health.Reading{RemapPending: true}, health.Policy{}, at(0))
	require.Equal(t, health.Degraded, track.State)
	track = track.Next(xids(48), health.Policy{}, at(900))
	require.Equal(t, health.Healthy, track.State)
	require.Empty(t, track.Evidence())
	require.Equal(t, health.Unhealthy, track.Next(health.Reading{}, health.Policy{}, at(910)).State)
}

func drawReading(t *rapid.T) health.Reading {
	r := health.Reading{Lost: rapid.Bool().Draw(t, "lost"), RemapPending: rapid.Bool().Draw(t, "pending"),
		RemapFailed: rapid.Bool().Draw(t, "failed"), Slowdown: rapid.Bool().Draw(t, "slow"),
		Recovery: rapid.SampledFrom([]string{"", "none", "none", "reset"}).Draw(t, "recovery")}
	for _, code := range rapid.SliceOfN(rapid.SampledFrom([]int{13, 31, 48, 63, 79, 92, 154, 777}), 0, 6).Draw(t, "xids") {
		r.XIDs = append(r.XIDs, health.XID{Code: code, Count: rapid.IntRange(0, 1000).Draw(t, "count")})
	}
	return r
}

// What is unhealthy is left by Clear alone; nothing is unhealthy without evidence; what is
// remembered is bounded; a track survives being stored.
func TestTracksHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var track health.Track
		now := begin
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "seconds")) * time.Second)
			before := track
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				track = track.Clear(now)
				require.Equal(t, health.Unknown, track.State)
				continue
			case 1, 2:
				track = track.Miss(health.Policy{}, now)
			case 3, 4, 5:
				track = track.Next(health.Reading{}, health.Policy{}, now)
			default:
				track = track.Next(drawReading(t), health.Policy{}, now)
			}
			if before.State == health.Unhealthy {
				require.Equal(t, health.Unhealthy, track.State)
			}
			if track.State == health.Unhealthy || track.State == health.Degraded {
				require.Equal(t, track.State, track.Evidence()[0].Level)
			}
			require.LessOrEqual(t, len(track.Faults), 32)
			require.LessOrEqual(t, len(track.Events), 128)
			text, err := json.Marshal(track)
			require.NoError(t, err)
			var stored health.Track
			require.NoError(t, json.Unmarshal(text, &stored))
			require.Equal(t, track.State, stored.State)
			require.Equal(t, track.Next(health.Reading{}, health.Policy{}, now.Add(time.Minute)).State,
				stored.Next(health.Reading{}, health.Policy{}, now.Add(time.Minute)).State)
		}
	})
}
