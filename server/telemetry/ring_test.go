package telemetry

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// use is what a GPU tells that is busy to so many percent.
func use(percent int) contract.GPUTelemetry { return contract.GPUTelemetry{Utilization: &percent} }

// readUse is what a ring tells of a day: the mean use of each five minutes, -1 where nothing came.
func readUse(r *ring, from, now time.Time) (all []int, first time.Time, whole bool) {
	kept, number, whole := r.read(numberFrom(from), now)
	for _, s := range steps(kept, number, 1) {
		if s.UtilizationMean == nil {
			all = append(all, -1)
			continue
		}
		all = append(all, *s.UtilizationMean)
	}
	return all, startOf(number), whole
}

// A bucket is small because there is a day of them for each GPU: its comment says what that comes to.
func TestADayIsSmall(t *testing.T) {
	t.Parallel()
	require.Equal(t, uintptr(12), unsafe.Sizeof(bucket{}))
	require.LessOrEqual(t, unsafe.Sizeof(ring{}), uintptr(3_600))
	require.Equal(t, 24*time.Hour, bucketsKept*bucketLength)
}

func TestFiguresOfABucket(t *testing.T) {
	t.Parallel()
	r := newRing(noon)
	r.add(contract.GPUTelemetry{Utilization: new(0), MemoryUsedMiB: new(1000), Temperature: new(-3), Power: new(100.0)},
		noon)
	r.add(contract.GPUTelemetry{Utilization: new(99), MemoryUsedMiB: new(3001), Temperature: new(-8), Power: new(101.5)},
		noon.Add(time.Minute))
	r.add(contract.GPUTelemetry{Utilization: new(30)}, noon.Add(4*time.Minute+59*time.Second))
	kept, first, whole := r.read(0, noon.Add(4*time.Minute+59*time.Second))
	require.False(t, whole, "nothing came before noon")
	require.Equal(t, []contract.GPUHistoryStep{{Start: noon, UtilizationMean: new(43), UtilizationMax: new(99),
		MemoryUsedMiBMean: new(2001), TemperatureMax: new(-3), PowerMean: new(100.8)}}, steps(kept, first, 1))
}

// What a GPU does not tell is left out, and is not zero.
func TestUntoldFigures(t *testing.T) {
	t.Parallel()
	r := newRing(noon)
	r.add(contract.GPUTelemetry{MemoryUsedMiB: new(0)}, noon)
	kept, first, _ := r.read(0, noon)
	require.Equal(t, []contract.GPUHistoryStep{{Start: noon, MemoryUsedMiBMean: new(0)}}, steps(kept, first, 1))
}

// Figures that no GPU has cannot be mistaken for others, nor for none.
func TestFiguresAreBounded(t *testing.T) {
	t.Parallel()
	r := newRing(noon)
	r.add(contract.GPUTelemetry{Utilization: new(255), MemoryUsedMiB: new(-1), Temperature: new(70_000), Power: new(-1.0)},
		noon)
	kept, first, _ := r.read(0, noon)
	require.Equal(t, []contract.GPUHistoryStep{{Start: noon, UtilizationMean: new(100), UtilizationMax: new(100),
		MemoryUsedMiBMean: new(0), TemperatureMax: new(1000), PowerMean: new(0.0)}}, steps(kept, first, 1))
}

// Five minutes in which nothing came are missing; those that go on are told once something came.
func TestGaps(t *testing.T) {
	t.Parallel()
	r := newRing(noon)
	r.add(use(10), noon)
	r.add(use(20), noon.Add(5*time.Minute))
	r.add(use(40), noon.Add(20*time.Minute))
	for now, want := range map[time.Duration]struct {
		use   []int
		whole bool
	}{
		0:                {[]int{10}, true}, // a clock that was set back: what comes is not told
		9 * time.Minute:  {[]int{10, 20}, true},
		12 * time.Minute: {[]int{10, 20}, true},
		24 * time.Minute: {[]int{10, 20, -1, -1, 40}, false},
		26 * time.Minute: {[]int{10, 20, -1, -1, 40}, false},
		31 * time.Minute: {[]int{10, 20, -1, -1, 40, -1}, false},
	} {
		got, first, whole := readUse(r, noon, noon.Add(now))
		require.Equal(t, want.use, got, now)
		require.Equal(t, want.whole, whole, now)
		require.Equal(t, noon, first)
	}
	got, first, whole := readUse(r, noon.Add(time.Second), noon.Add(9*time.Minute))
	require.Equal(t, []int{20}, got, "five minutes that began before are left out")
	require.Equal(t, noon.Add(5*time.Minute), first)
	require.True(t, whole)
	got, _, whole = readUse(r, noon.Add(time.Hour), noon.Add(50*time.Minute))
	require.Empty(t, got)
	require.True(t, whole, "nothing is missing of no time")
}

// The ring keeps a day, whatever is asked for and however long it goes on.
func TestTheRingWraps(t *testing.T) {
	t.Parallel()
	r := newRing(noon)
	last := noon
	for i := range 3*bucketsKept + 7 {
		last = noon.Add(time.Duration(i) * bucketLength)
		r.add(use(i%100), last)
	}
	got, first, whole := readUse(r, time.Time{}, last)
	require.Len(t, got, bucketsKept)
	require.Equal(t, last.Add(-(bucketsKept-1)*bucketLength), first)
	require.True(t, whole)
	for i, percent := range got {
		require.Equal(t, (2*bucketsKept+7+i)%100, percent)
	}
	later := last.Add(2 * bucketLength)
	got, _, whole = readUse(r, time.Time{}, later)
	require.Len(t, got, bucketsKept-1, "the five minutes that go on are not among them yet")
	require.Equal(t, -1, got[len(got)-1], "and are not those of a day ago")
	require.False(t, whole)
	got, _, _ = readUse(r, time.Time{}, last.Add(30*time.Hour))
	require.NotContains(t, got, 0)
	r.add(use(77), last.Add(30*time.Hour))
	got, _, _ = readUse(r, time.Time{}, last.Add(30*time.Hour))
	require.Equal(t, 77, got[bucketsKept-1])
	for _, percent := range got[:bucketsKept-1] {
		require.Equal(t, -1, percent)
	}
}

// A clock that goes back a little adds to what goes on; one that is set back forgets what it has not reached.
func TestAClockThatGoesBack(t *testing.T) {
	t.Parallel()
	r := newRing(noon)
	for i, percent := range []int{10, 20, 30, 40} {
		r.add(use(percent), noon.Add(time.Duration(i)*bucketLength))
	}
	r.add(use(60), noon.Add(14*time.Minute+59*time.Second))
	got, _, _ := readUse(r, noon, noon.Add(16*time.Minute))
	require.Equal(t, []int{10, 20, 30, 50}, got)

	r.add(use(90), noon.Add(6*time.Minute))
	got, _, _ = readUse(r, noon, noon.Add(6*time.Minute))
	require.Equal(t, []int{10, 90}, got)
	got, _, _ = readUse(r, noon, noon.Add(16*time.Minute))
	require.Equal(t, []int{10, 90, -1}, got, "what came then is not told as of that time")

	r.add(use(5), noon.Add(-48*time.Hour))
	got, first, whole := readUse(r, noon.Add(-48*time.Hour), noon.Add(-48*time.Hour))
	require.Equal(t, []int{5}, got)
	require.Equal(t, noon.Add(-48*time.Hour), first)
	require.True(t, whole)
}

// Five minutes count alike in a longer step, but for those in which nothing came.
func TestLongerSteps(t *testing.T) {
	t.Parallel()
	r := newRing(noon)
	begin := noon.Add(50 * time.Minute)
	for i, percent := range []int{10, 30, 50, -1, 100} {
		if percent >= 0 {
			r.add(use(percent), begin.Add(time.Duration(i)*bucketLength))
		}
	}
	kept, first, _ := r.read(numberFrom(begin), begin.Add(20*time.Minute))
	require.Equal(t, []contract.GPUHistoryStep{
		{Start: noon, UtilizationMean: new(20), UtilizationMax: new(30)},
		{Start: noon.Add(time.Hour), UtilizationMean: new(75), UtilizationMax: new(100)},
	}, steps(kept, first, 12))
	kept, first, _ = r.read(numberFrom(begin), begin.Add(20*time.Minute))
	quarters := steps(kept, first, 3)
	require.Len(t, quarters, 2)
	require.Equal(t, noon.Add(45*time.Minute), quarters[0].Start, "steps begin on the clock")
}

// A daemon that names ever more GPUs is kept no more of than a look has.
func TestGPUsOfANodeAreBounded(t *testing.T) {
	t.Parallel()
	p := past{}
	for look := range 100 {
		var l contract.NodeLook
		for i := range mostRings / 2 {
			l.GPUs = append(l.GPUs, contract.LookGPU{UUID: fmt.Sprint(look, " ", i), GPUTelemetry: use(1)})
		}
		p.add(l, noon)
		require.LessOrEqual(t, len(p), mostRings)
		require.Contains(t, p, fmt.Sprint(look, " 0"))
	}
	p = past{}
	lost := contract.LookGPU{UUID: "lost", Lost: true, GPUTelemetry: use(1)}
	p.add(contract.NodeLook{GPUs: []contract.LookGPU{lost, {UUID: "mute"}}}, noon)
	require.Empty(t, p, "nothing is kept of GPUs that tell nothing")
}
