package dcgm_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/dcgm"
	"github.com/forewarm/forewarm/node/gpu"
)

// told is a source that has looked already.
type told struct {
	gpu.Source
	gpus []contract.LookGPU
	err  error
}

func (s told) Look(context.Context) (gpu.Reading, error) {
	return gpu.Reading{Look: contract.NodeLook{Source: gpu.FromNVML, GPUs: slices.Clone(s.gpus)}}, s.err
}

// serve serves a page as an exporter does.
func serve(t *testing.T, answer http.HandlerFunc) *dcgm.Exporter {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	e, err := dcgm.NewExporter(s.URL+"/metrics", false)
	require.NoError(t, err)
	return e
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
}

func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	return string(data)
}

// What the source does not tell comes from the exporter, which is named; what it tells stays; what neither tells is
// absent.
func TestAnExporterFillsInWhatIsMissing(t *testing.T) {
	t.Parallel()
	exporter := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/metrics", r.URL.Path)
		_, _ = w.Write([]byte(page(t)))
	})
	source := dcgm.Source{Exporter: exporter, Source: told{gpus: []contract.LookGPU{
		{UUID: "GPU-1", GPUTelemetry: contract.GPUTelemetry{Temperature: gpu.Of(45), Utilization: gpu.Of(0)}},
		{UUID: "GPU-2"}, {UUID: "MIG-1", Parent: "GPU-1"}, {UUID: "GPU-3"}}}}
	r, err := source.Look(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.Look.ExporterProblem)
	require.Equal(t, contract.GPUTelemetry{Temperature: gpu.Of(45), Utilization: gpu.Of(0), SMActivity: gpu.Of(81.25),
		MemoryMiB: gpu.Of(81559), MemoryUsedMiB: gpu.Of(10000), Power: gpu.Of(412.371), SMClock: gpu.Of(1410),
		MemoryClock: gpu.Of(1593), ECCAggregate: gpu.Of(int64(1)), ECCCorrectedVolatile: gpu.Of(int64(3)),
		Remapped: gpu.Of(3), LastXID: gpu.Of(31), NVLinkSent: gpu.Of(int64(50_000_000)), PCIeGeneration: gpu.Of(5),
		PCIeSent: gpu.Of(int64(1_250_000)), FromDCGM: []string{"sm_activity_percent", "memory_total_mib", "memory_used_mib",
			"power_watts", "sm_clock_mhz", "memory_clock_mhz", "ecc_uncorrected_aggregate", "ecc_corrected_volatile",
			"remapped_rows", "last_xid", "nvlink_sent_bytes_per_second", "pcie_generation", "pcie_sent_bytes_per_second"}},
		r.Look.GPUs[0].GPUTelemetry)
	require.Equal(t, contract.GPUTelemetry{Utilization: gpu.Of(0), SMClock: gpu.Of(345),
		FromDCGM: []string{"utilization_percent", "sm_clock_mhz"}}, r.Look.GPUs[1].GPUTelemetry)
	require.Zero(t, r.Look.GPUs[2].GPUTelemetry, "a part of a GPU has none of its whole")
	require.Zero(t, r.Look.GPUs[3].GPUTelemetry, "a whole GPU has none of its parts")
}

// Each name that a look may say is one of the wire's.
func TestFieldsAreNamedAsOnTheWire(t *testing.T) {
	t.Parallel()
	var known []string
	for f := range reflect.TypeFor[contract.GPUTelemetry]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
	}
	require.Subset(t, known, dcgm.FieldNames())
}

// A page that is not whole fills in nothing, and the look is whole without it.
func TestAnExporterThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for want, answer := range map[string]http.HandlerFunc{
		"it answered 503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"it answered 302": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
		"reading its metrics: text format parsing error": text(page(t) + "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\n"),
		"reading its metrics: text format":               text(page(t) + "<html>"),
		"larger than 4194304 bytes":                      text(page(t) + strings.Repeat("# a comment\n", 400_000)),
		"unexpected EOF": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write([]byte(page(t)))
		},
	} {
		source := dcgm.Source{Source: told{gpus: []contract.LookGPU{{UUID: "GPU-1"}}}, Exporter: serve(t, answer)}
		r, err := source.Look(t.Context())
		require.NoError(t, err)
		require.Contains(t, r.Look.ExporterProblem, want)
		require.Empty(t, r.Look.Problem)
		require.Equal(t, []contract.LookGPU{{UUID: "GPU-1"}}, r.Look.GPUs)
	}
	failing := dcgm.Source{Source: told{err: errors.New("the driver hangs")}, Exporter: serve(t, text(page(t)))}
	_, err := failing.Look(t.Context())
	require.EqualError(t, err, "the driver hangs")
}

// Only near addresses are asked, whatever a name resolves to.
func TestWhereAnExporterMayBe(t *testing.T) {
	t.Parallel()
	for _, near := range []string{"http://127.0.0.1:9400/metrics", "http://[::1]:9400/metrics",
		"http://10.1.2.3:9400/metrics",
		"https://dcgm.internal/metrics", "http://localhost:9400/metrics"} {
		_, err := dcgm.NewExporter(near, false)
		require.NoError(t, err, near)
	}
	for _, wrong := range []string{"", "127.0.0.1:9400", "file:///etc/passwd", "http://",
		"http://ann:secret@127.0.0.1/metrics"} {
		_, err := dcgm.NewExporter(wrong, true)
		require.Error(t, err, wrong)
		require.NotContains(t, err.Error(), "secret")
	}
	for _, far := range []string{"http://8.8.8.8/metrics", "http://169.254.169.254/metrics",
		"http://[2001:db8::1]/metrics", "http://0.0.0.0:9400/metrics"} {
		_, err := dcgm.NewExporter(far, false)
		require.ErrorContains(t, err, "neither of this machine nor of a private network")
		_, err = dcgm.NewExporter(far, true)
		require.NoError(t, err)
	}
	require.ErrorContains(t, dcgm.CheckDial(t.Context(), "192.0.2.1:9400"), "dcgm_anywhere is not set")
}
