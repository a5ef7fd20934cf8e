package sim_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners/sim"
)

func TestBill(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Terminating = 5 * time.Second
	cloud, manual := openCloud(t, c)
	short, long := createInstance(t, cloud, 1), createInstance(t, cloud, 2)
	manual.Advance(10 * time.Second)
	require.NoError(t, cloud.Delete(t.Context(), short.ID))
	manual.Advance(59*time.Minute + 50*time.Second)
	require.NoError(t, cloud.Delete(t.Context(), long.ID))
	manual.Advance(time.Hour)

	bill := cloud.Bill(manual.Now())
	require.Len(t, bill.Lines, 2)
	byNode := map[string]sim.Line{}
	for _, line := range bill.Lines {
		byNode[line.NodeID] = line
	}
	// 15 s used, a minute billed: 36 $/h is 1 cent a second.
	require.Equal(t, 15*time.Second, byNode["nod_1"].To.Sub(byNode["nod_1"].From))
	require.Equal(t, sim.Sum{Machines: 1, Billed: time.Minute, Cost: 600_000}, byNode["nod_1"].Sum)
	require.Equal(t, sim.Sum{Machines: 1, Billed: time.Hour + 5*time.Second, Cost: 36_050_000}, byNode["nod_2"].Sum)
	require.Equal(t, sim.Sum{Machines: 2, Billed: time.Hour + 65*time.Second, Cost: 36_650_000}, bill.Total)
}

// Whatever happens in whatever order: the bill never shrinks, its total is the
// sum of its parts, live machines are on it, and a restart changes nothing.
func TestBillProperties(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		c := testConfig()
		c.StateFile = filepath.Join(folder, fmt.Sprint(run), "sim.json")
		manual := clock.NewManual(start)
		cloud, err := sim.New(c, manual)
		require.NoError(r, err)
		var ids []string
		var last sim.Sum
		for n := range rapid.IntRange(1, 40).Draw(r, "steps") {
			switch rapid.IntRange(0, 4).Draw(r, "step") {
			case 0:
				made, err := cloud.Create(t.Context(), fmt.Sprint(n), testSpec(fmt.Sprint(n)))
				require.NoError(r, err)
				ids = append(ids, made.ID)
			case 1:
				if len(ids) > 0 {
					require.NoError(r, cloud.Delete(t.Context(), rapid.SampledFrom(ids).Draw(r, "id")))
				}
			case 2:
				before := cloud.Bill(manual.Now())
				cloud, err = sim.New(c, manual)
				require.NoError(r, err)
				require.Equal(r, before.Total, cloud.Bill(manual.Now()).Total)
			default:
				manual.Advance(time.Duration(rapid.Int64Range(0, int64(9*time.Hour)).Draw(r, "wait")))
			}
			live := len(cloud.LivePerNode())
			bill := cloud.Bill(manual.Now())
			parts := bill.Settled
			for _, line := range bill.Lines {
				parts.Machines, parts.Billed, parts.Cost = parts.Machines+1, parts.Billed+line.Billed,
					parts.Cost+line.Cost
			}
			require.Equal(r, parts, bill.Total)
			require.Equal(r, len(ids), bill.Total.Machines)
			require.GreaterOrEqual(r, len(bill.Lines), live)
			require.GreaterOrEqual(r, bill.Total.Cost, last.Cost)
			last = bill.Total
		}
	})
}
