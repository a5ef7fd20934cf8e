package evidence_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/evidence"
)

// closes follows what is learned of one kind and one tenant, by the formulas
// themselves. Arrays are by judged size.
type closes struct {
	n, right, mean float64
	saved, idle    [3]float64
}

func (c *closes) addResult(saved, idle [3]float64, chance float64) {
	keep := math.Pow(0.5, 1.0/30)
	c.n, c.right = keep*c.n+1, keep*c.right+math.Min(1, saved[1])
	for i := range 3 {
		c.saved[i], c.idle[i] = keep*c.saved[i]+saved[i], keep*c.idle[i]+idle[i]
	}
	if c.mean == 0 {
		c.mean = chance
	}
	c.mean += (chance - c.mean) / 16
}

// believed is the trust, what each size saves and idles, and the caution, of a record
// that is as much surer than usual. The kind's record and the tenant's are the same
// here: each is drawn to what was believed before as by four records.
func (c *closes) believed(surer float64) (trust float64, saved, idle [3]float64, caution float64) {
	prior := [3]float64{0.25, 0.25, 0.125}
	mixed := func(before, sum float64) float64 { return (4*before + sum) / (4 + c.n) }
	twice := func(before, sum float64) float64 { return mixed(mixed(before, sum), sum) }
	hits := 4*mixed(0.25, c.right) + c.right
	for i := range 3 {
		saved[i] = twice(prior[i], c.saved[i]) * surer
		used := 1 - twice(1-0.7*prior[i], c.idle[i])
		idle[i] = clampBetween(1-used*surer, 0, 1)
	}
	return math.Min(1, twice(0.25, c.right)*surer), saved, idle, 1 - 0.25/math.Sqrt(hits)
}

// Two GPUs are a job, and a GPU-hour costs 2. A hold lasts from seven minutes before
// the start to twelve after it, and is paid for at least 30 minutes.
func TestTheGateFollowsItsFormulas(t *testing.T) {
	t.Parallel()
	terms := evidence.Terms{WaitPrice: 60, GPUPrice: 2, Boot: 5 * time.Minute, JobGPUs: 2, MinBilling: 30 * time.Minute}
	b := newTrackRecords(t, evidence.Config{Allowance: 1000})
	var seen closes
	var gains []float64
	gpus, jobs, hours := [3]int{2, 4, 8}, [3]float64{1, 2, 4}, [3]float64{1, 2, 4}
	verdicts := map[evidence.Verdict]int{}
	for n := range 50 {
		now := noon.Add(time.Duration(n) * time.Hour)
		r := recordAt(now)
		r.Probability = []float64{0.5, 0.7, 0.4}[n%3]
		d, err := b.Consider(now, "x", r, terms)
		require.NoError(t, err)
		verdicts[d.Verdict]++
		trust, saved, idle, caution := 0.25, [3]float64{0.25, 0.25, 0.125}, [3]float64{0.825, 0.825, 0.9125}, 0.75
		if n > 0 {
			trust, saved, idle, caution = seen.believed(clampBetween(r.Probability/seen.mean, 0.25, 4))
		}
		i := d.Size
		want := []float64{trust, jobs[i] * saved[i] * caution, idle[i], 60.0 / 12 * jobs[i] * saved[i] * caution,
			2 * hours[i] * idle[i]}
		require.InDeltaSlice(t, want, []float64{d.Trust, d.Saved, d.Idle, d.Gain, d.Cost}, 1e-9, "record %d", n)
		if d.Verdict == evidence.Accepted {
			require.Equal(t, gpus[i], d.GPUs)
			require.Greater(t, d.Gain, d.Cost)
		}
		out, came, left := evidence.Outcome{}, [3]float64{}, [3]float64{}
		for size := range 3 {
			came[size], left[size] = 0.25, 0.5
			if n%3 > 0 || n < 10 {
				came[size], left[size] = 1.5/float64(size+1), 0.125
			}
			out.Saved[size], out.Idle[size] = came[size]*jobs[size], left[size]*hours[size]
		}
		require.NoError(t, b.Close(d.Until, "x", out))
		seen.addResult(came, left, r.Probability)
		if d.Verdict != evidence.Unworthy { // a spared boot is worth 60/2 GPU-hours an hour
			gains = append(gains, 30.0/12*came[i]*jobs[i]/hours[i]-left[i])
		}
		requireTrack(t, b, seen, gains)
	}
	require.Greater(t, verdicts[evidence.Accepted], 10)
}

// requireTrack compares the stored state with the closes that it was learned from.
func requireTrack(t *testing.T, b *evidence.TrackRecords, seen closes, gains []float64) {
	t.Helper()
	type track struct {
		N, Right    float64
		Saved, Idle [3]float64
	}
	var state struct {
		Kinds map[string]struct {
			Fleet    track
			Tenants  map[string]track
			Said     float64
			Standing struct{ Gains []float64 }
		}
	}
	data, err := json.Marshal(b)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &state))
	k := state.Kinds["llm/announced"]
	require.InDelta(t, seen.mean, k.Said, 1e-9)
	for _, got := range []track{k.Fleet, k.Tenants["lab"]} {
		require.InDeltaSlice(t, []float64{seen.n, seen.right}, []float64{got.N, got.Right}, 1e-9)
		require.InDeltaSlice(t, seen.saved[:], got.Saved[:], 1e-9)
		require.InDeltaSlice(t, seen.idle[:], got.Idle[:], 1e-9)
	}
	require.InDeltaSlice(t, gains[max(0, len(gains)-20):], k.Standing.Gains, 1e-9)
}

// What statistics hold besides their demand idles for no record.
func TestAWatchByHand(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Plan(atMinute(0), 3)
	w.Submit(atMinute(0), 1)
	w.Open(atMinute(1), "x", believableRecord(), acceptHold(atMinute(1), 4))
	require.False(t, w.Begun("x"))
	require.False(t, w.Begun("y"))
	w.Submit(atMinute(7), 2) // statistics hold two more, and idle for neither
	require.Equal(t, 3, w.Demand())
	require.True(t, w.Begun("x"))
	require.Equal(t, 2, w.Left(atMinute(7), "x"))
	require.Zero(t, w.Left(atMinute(7), "y"))
	w.End(atMinute(8), 1)
	require.Equal(t, 2, w.Demand())
	w.End(atMinute(9), 5)
	require.Zero(t, w.Demand(), "never fewer than none")
	out, ok := w.Close(atMinute(10), "x")
	require.True(t, ok)
	require.Zero(t, out.Spared, "they were there anyway")
	// Of the four, statistics covered two until 7:00 and none until 8:00, one until
	// 9:00 and three until 10:00; two were taken at 7:00.
	require.InDelta(t, (2.0*6+2*1+1*1+0)/60, out.Spent, 1e-9)
	require.InDeltaSlice(t, []float64{0, (2.0*6 + 2 + 1) / 60, (6.0*6 + 6 + 5 + 3) / 60}, out.Idle[:], 1e-9)
	_, ok = w.Close(atMinute(10), "x")
	require.False(t, ok, "once")
}

// What one record still holds idles for it, and for no later one.
func TestTheFirstRecordIdlesFirst(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	w.Open(atMinute(0), "y", believableRecord(), acceptHold(atMinute(0), 8))
	w.Submit(atMinute(6), 2)
	y, _ := w.Close(atMinute(10), "y")
	require.InDelta(t, (4.0*6+4*4)/60, y.Spent, 1e-9)
	require.Zero(t, y.Spared)
	x, _ := w.Close(atMinute(10), "x")
	require.InDelta(t, (4.0*6+2*4-2*5)/60, x.Spent, 1e-9, "less the boots that would have been paid for anyway")
	require.InDelta(t, 1, x.Spared, 1e-9)
}

// A watch remembers rises of the supply for a boot, and no longer.
func TestAWatchForgetsWhatHasBooted(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	for n := range 100 {
		w.Plan(atMinute(float64(n)), n)
	}
	data, err := json.Marshal(w)
	require.NoError(t, err)
	require.Equal(t, int(boot.Minutes()), strings.Count(string(data), `"until"`))
}

// A hold that was given up no longer idles in another's place.
func TestAHoldThatWasGivenUpCoversNothing(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	w.Open(atMinute(10), "y", believableRecord(), acceptHold(atMinute(10), 4))
	w.Plan(atMinute(12), 0)
	y, _ := w.Close(atMinute(20), "y")
	require.InDelta(t, 4*8.0/60, y.Spent, 1e-9, "from when the first was seen to be given up")
}

// Closes that were worth nothing demote nobody, and bring nobody back.
func TestWhatIsWorthNothingChangesNothing(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 1e6}), noon
	terms := userTerms()
	terms.WaitPrice = 1e6
	play := func(n int, idle float64) {
		for range n {
			d, err := b.Consider(now, "x", recordAt(now), terms)
			require.NoError(t, err)
			require.NotEqual(t, evidence.Unworthy, d.Verdict)
			require.NoError(t, b.Close(d.Until, "x", evidence.Outcome{Idle: [3]float64{idle, idle, idle}}))
			now = now.Add(time.Hour)
		}
	}
	acting := func() bool { return b.TrackRecord("llm", "announced").Acting }
	play(30, 0)
	require.True(t, acting())
	play(30, 1)
	require.False(t, acting())
	play(60, 0)
	require.False(t, acting())
}

// As many holds as there can be open records are read back.
func TestAWatchOfManyHoldsIsReadBack(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	for n := range 4097 {
		if n > 4094 {
			data, err := json.Marshal(w)
			require.NoError(t, err)
			require.NoError(t, new(evidence.Watch).UnmarshalJSON(data), "%d holds", n)
		}
		w.Open(noon, "x", believableRecord(), acceptHold(noon, 1))
	}
	data, err := json.Marshal(w)
	require.NoError(t, err)
	require.Error(t, new(evidence.Watch).UnmarshalJSON(data))
}
