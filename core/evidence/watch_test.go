package evidence_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/evidence"
)

const boot = 5 * time.Minute

// acceptHold is a decision to hold so many GPUs from now on.
func acceptHold(now time.Time, gpus int) evidence.Decision {
	return evidence.Decision{GPUs: gpus, From: now, Doubt: now.Add(11 * time.Minute), Until: now.Add(19 * time.Minute)}
}

func atMinute(m float64) time.Time { return noon.Add(time.Duration(m * float64(time.Minute))) }

// Nobody is there, four GPUs are claimed, and two jobs of two come when they have
// booted: two boots are spared, and the guard of two minutes is all that idles.
func TestWatchSeesAHit(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	require.Equal(t, 4, w.Claimed(atMinute(7)))
	w.Submit(atMinute(7), 2)
	require.Equal(t, 2, w.Claimed(atMinute(7)))
	w.Submit(atMinute(7), 2)
	require.Zero(t, w.Claimed(atMinute(7)))
	require.Equal(t, 4, w.Demand())
	out, ok := w.Close(atMinute(13), "x")
	require.True(t, ok)
	require.Equal(t, [3]float64{1, 2, 2}, out.Saved, "half of it would have spared one")
	require.InDelta(t, 2*2.0/60, out.Idle[0], 1e-9)
	require.InDelta(t, 4*2.0/60, out.Idle[1], 1e-9)
	require.InDelta(t, 4*2.0/60+4*13.0/60, out.Idle[2], 1e-9, "twice of it would have idled for four more")
	require.Equal(t, 2.0, out.Spared)
	require.InDelta(t, 4*2.0/60, out.Spent, 1e-9)
	_, ok = w.Close(atMinute(13), "x")
	require.False(t, ok)
}

func TestWatchSeesAMiss(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 0))
	require.Zero(t, w.Claimed(atMinute(7)), "it was not accepted, but it is watched")
	out, ok := w.Close(atMinute(19), "x")
	require.True(t, ok)
	require.Zero(t, out.Saved)
	require.InDelta(t, 4*11.0/60, out.Idle[1], 1e-9, "it is given up when nothing has come by minute 11")
	require.Zero(t, out.Spent)
	require.Zero(t, out.Spared)
}

// When nothing has come by the time of doubt, the hold is over for good.
func TestAHoldIsGivenUp(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	w.Open(atMinute(0), "y", believableRecord(), acceptHold(atMinute(0), 8))
	require.Equal(t, 8, w.Claimed(atMinute(10.9)))
	require.Zero(t, w.Claimed(atMinute(11)))
	w.Submit(atMinute(12), 2)
	require.Zero(t, w.Claimed(atMinute(12)))
	out, _ := w.Close(atMinute(19), "x")
	require.Zero(t, out.Saved)
	require.InDelta(t, 4*11.0/60, out.Spent, 1e-9)
	out, _ = w.Close(atMinute(19), "y")
	require.InDelta(t, 4*11.0/60, out.Spent, 1e-9, "four GPUs more than the first")
}

// What statistics hold anyway is no merit of the record, and costs it nothing.
func TestWatchCountsUpliftOnly(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Plan(atMinute(-10), 3)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	w.Submit(atMinute(7), 2)
	w.Submit(atMinute(8), 2)
	out, _ := w.Close(atMinute(13), "x")
	require.Equal(t, 1.0, out.Spared, "the second job needs a GPU that statistics did not hold")
	require.InDelta(t, (8.0-5-5)/60*1+2*0, out.Spent, 0.2)
	require.Equal(t, 1.0, out.Saved[1])
}

// A job is spared once, however many records announced it.
func TestTwoRecordsShareOneNeed(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	w.Open(atMinute(1), "y", believableRecord(), acceptHold(atMinute(1), 4))
	require.Equal(t, 4, w.Claimed(atMinute(7)), "they may speak of the same need")
	w.Submit(atMinute(7), 4)
	x, _ := w.Close(atMinute(13), "x")
	y, _ := w.Close(atMinute(14), "y")
	require.Equal(t, 1.0, x.Spared)
	require.Zero(t, y.Spared)
	require.Zero(t, y.Saved[1], "the second told nothing new")
	require.InDelta(t, 4*2.0/60, x.Spent, 1e-9)
	require.InDelta(t, 0, y.Spent, 1e-9, "and cost nothing more")
}

// A gang that does not fit into what is held is not spared.
func TestAGangIsSparedAsAWhole(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	w.Submit(atMinute(7), 8)
	out, _ := w.Close(atMinute(13), "x")
	require.Equal(t, [3]float64{0, 0, 1}, out.Saved)
	require.Zero(t, out.Spared)
}

// Part of a wait counts as a part.
func TestAnEarlyJobIsSparedInPart(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	w.Submit(atMinute(4), 4)
	out, _ := w.Close(atMinute(13), "x")
	require.InDelta(t, 0.8, out.Spared, 1e-9)
	require.InDelta(t, 0, out.Spent, 1e-9, "the boot would have been paid for anyway")
}

// The waits that statistics leave, against a plain count of each level's age.
func TestWatchKnowsTheWaitsOfStatistics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := evidence.NewWatch(boot)
		const levels = 40
		// A hold that is ready at once and never ends would spare every wait.
		all := believableRecord()
		all.Mid, all.High = evidence.MaxGPUs, evidence.MaxGPUs
		w.Open(noon.Add(-boot), "all", all, evidence.Decision{GPUs: evidence.MaxGPUs, Doubt: noon.AddDate(1, 0, 0)})
		waited := 0.0
		var since [levels + 1]time.Time // supplied without a break
		now, planned, demand := noon, 0, 0
		supply := func() {
			for k := 1; k <= levels; k++ {
				switch held := k <= max(planned, demand); {
				case !held:
					since[k] = time.Time{}
				case since[k].IsZero():
					since[k] = now
				}
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "gap")) * time.Second)
			switch gpus := rapid.IntRange(1, 8).Draw(t, "gpus"); rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				planned = rapid.IntRange(0, levels).Draw(t, "plan")
				w.Plan(now, planned)
			case 1:
				if gpus = min(gpus, demand); gpus > 0 {
					demand -= gpus
					w.End(now, gpus)
				}
			default:
				if demand+gpus > levels {
					continue
				}
				demand += gpus
				if at := since[demand]; at.IsZero() {
					waited++
				} else {
					waited += max(0, boot-now.Sub(at)).Seconds() / boot.Seconds()
				}
				w.Submit(now, gpus)
			}
			supply()
		}
		out, ok := w.Close(now, "all")
		require.True(t, ok)
		require.InDelta(t, waited, out.Spared, 1e-6)
	})
}

// A restart in the middle of a hold changes nothing.
func TestWatchStateRoundTrip(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Plan(atMinute(-3), 2)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	w.Submit(atMinute(6), 3)
	data, err := json.Marshal(w)
	require.NoError(t, err)
	var back evidence.Watch
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, w.Left(atMinute(7), "x"), back.Left(atMinute(7), "x"))
	require.True(t, back.Begun("x"))
	for _, each := range []*evidence.Watch{w, &back} {
		each.Submit(atMinute(8), 1)
		each.End(atMinute(9), 2)
	}
	want, _ := w.Close(atMinute(19), "x")
	got, ok := back.Close(atMinute(19), "x")
	require.True(t, ok)
	require.Equal(t, want, got)
	for _, bad := range []string{`{`, `{"version":9}`, strings.Replace(string(data), `"boot":`, `"boot":-`, 1),
		strings.Replace(string(data), `"held":4`, `"held":-4`, 1)} {
		require.Error(t, back.UnmarshalJSON([]byte(bad)), bad)
	}
}
