package gpus

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// All that a daemon tells of a GPU is shown, and what it does not tell is a dash and no zero.
func TestDetailsOfAGPU(t *testing.T) {
	t.Parallel()
	text := func(x contract.GPU) map[string]string {
		out := map[string]string{}
		for _, c := range detailView.Columns[len(gpuView.Columns):] {
			out[c.Head] = c.Cell(x)
		}
		return out
	}
	full := text(contract.GPU{Seen: &contract.GPUSeen{GPUTelemetry: contract.GPUTelemetry{Utilization: new(97),
		SMActivity: new(81.25), MemoryUsedMiB: new(10), MemoryBusy: new(3), Temperature: new(61), Power: new(412.4),
		PowerLimit: new(700.0), SMClock: new(1410), MemoryClock: new(1593), Throttle: []string{"power_cap", "sync_boost"},
		ECCVolatile: new(int64(0)), ECCAggregate: new(int64(1)), ECCCorrectedVolatile: new(int64(2)),
		ECCCorrectedAggregate: new(int64(3)), Remapped: new(4), XIDCount: new(int64(5)), LastXID: new(31),
		NVLinkErrors: new(int64(6)), NVLinks: new(18), NVLinksUp: new(17), NVLinkSent: new(int64(5_000_000)),
		PCIeGeneration: new(1), PCIeGenerationMax: new(5), PCIeWidth: new(8), PCIeWidthMax: new(16),
		PCIeSent: new(int64(1_250_000)), PCIeReceived: new(int64(0)), FromDCGM: []string{"power_watts"}}}})
	require.Equal(t, map[string]string{"USE": "97%, 81.2% of its multiprocessors", "MEMORY USED": "10 MiB, busy 3%",
		"TEMPERATURE": "61 °C", "POWER": "412 W, at most 700 W", "CLOCKS": "sm 1410 MHz, memory 1593 MHz",
		"THROTTLED": "power_cap, sync_boost", "ECC ERRORS": "uncorrected 0, ever 1, corrected 2, ever 3",
		"REMAPPED ROWS": "4", "XIDS": "5, last 31", "NVLINK": "17 of 18 up, errors 6, sends 5.0 MB/s",
		"PCIE":      "generation 1 of 5, x 8 of 16, sends 1.2 MB/s, receives 0.0 MB/s",
		"FROM DCGM": "power_watts"}, full)
	for _, x := range []contract.GPU{{}, {Seen: &contract.GPUSeen{}}} {
		for head, cell := range text(x) {
			require.Equal(t, "-", cell, head)
		}
	}
}
