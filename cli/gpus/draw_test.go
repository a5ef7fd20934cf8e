package gpus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

func TestADayIsDrawn(t *testing.T) {
	t.Parallel()
	steps := []contract.GPUHistoryStep{
		{UtilizationMean: new(0), UtilizationMax: new(0), MemoryUsedMiBMean: new(0), PowerMean: new(60.4)},
		{UtilizationMean: new(50), UtilizationMax: new(100), MemoryUsedMiBMean: new(40_960), PowerMean: new(700.4)},
		{},
		{UtilizationMean: new(100), UtilizationMax: new(100), MemoryUsedMiBMean: new(20_480), PowerMean: new(350.4)},
	}
	require.Equal(t, "use      ▁▅·█  up to 100%\nmemory   ▁█·▅  up to 40.0G\npower    ▁█·▅  up to 700W\n",
		drawHistory(steps), "nobody told a temperature")
	require.Equal(t, "use      ▁▁  up to 7%\n", drawHistory([]contract.GPUHistoryStep{{UtilizationMean: new(7)},
		{UtilizationMean: new(0)}}), "use is drawn to 100%")
	require.Equal(t, "memory   ▁  up to 0.0G\n", drawHistory([]contract.GPUHistoryStep{{MemoryUsedMiBMean: new(0)}}))
}

func TestStepsAreChosen(t *testing.T) {
	t.Parallel()
	for since, step := range map[time.Duration]time.Duration{
		time.Minute: 5 * time.Minute, 2 * time.Hour: 5 * time.Minute,
		2*time.Hour + time.Second: 15 * time.Minute, 6 * time.Hour: 15 * time.Minute, 12 * time.Hour: 30 * time.Minute,
		24 * time.Hour: time.Hour} {
		require.Equal(t, step, chooseStep(since), since)
	}
}
