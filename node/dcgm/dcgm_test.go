package dcgm_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/node/dcgm"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/work/worktest"
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
		"reading its metrics: the last line has no end":  text(page(t) + "DCGM_"),
		"reading its metrics: none begins with DCGM_FI_": text("<html>\n"),
		"larger than 1048576 bytes":                      text(page(t) + strings.Repeat("# a comment\n", 90_000)),
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
	for _, far := range []string{"http://8.8.8.8/metrics", "http://169.254.1.1/metrics",
		"http://[2001:db8::1]/metrics", "http://0.0.0.0:9400/metrics"} {
		_, err := dcgm.NewExporter(far, false)
		require.ErrorContains(t, err, "neither of this machine nor of a private network")
		_, err = dcgm.NewExporter(far, true)
		require.NoError(t, err)
	}
	require.ErrorContains(t, dcgm.CheckDial(t.Context(), "192.0.2.1:9400", false), "dcgm_anywhere is not set")
	for _, cloud := range []string{"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[fd00:ec2::254]:80"} {
		for _, anywhere := range []bool{false, true} {
			_, err := dcgm.NewExporter("http://"+cloud+"/metrics", anywhere)
			require.ErrorContains(t, err, "is where a cloud hands out credentials")
			require.ErrorContains(t, dcgm.CheckDial(t.Context(), cloud, anywhere), "is where a cloud hands out credentials")
		}
	}
}

// Each address of this machine is a holder's where a holder listens at it.
func TestAProgramOfAHolderIsNoExporter(t *testing.T) {
	t.Parallel()
	user, is := httpx.FirstHolder, true
	if os.Getuid() != 0 { // who can listen as oneself alone, and is no holder
		user, is = os.Getuid(), false
	}
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range all {
		own, err := netip.ParsePrefix(a.String())
		require.NoError(t, err)
		if own.Addr().IsLinkLocalUnicast() {
			continue // it is none without its interface
		}
		l := worktest.ListenAtAs(t, netip.AddrPortFrom(own.Addr(), 0).String(), strconv.Itoa(user))
		t.Cleanup(func() { _ = l.Close() })
		err = dcgm.CheckDial(t.Context(), l.Addr().String(), true)
		require.Equal(t, is, err != nil, "%s: %v", own, err)
		require.True(t, !is || strings.HasSuffix(err.Error(), "is a program of somebody who holds GPUs here"))
	}
}

// What else is on the page does not matter: an exporter tells of itself, and others tell of much on the same page.
func TestLinesThatAreNotDCGMsAreLeftOut(t *testing.T) {
	t.Parallel()
	const others = "# HELP go_gc Twice\n# TYPE go_gc counter\n# TYPE go_gc gauge\n<html>\n\n# DCGM_FI_ is told of\n" +
		"go_gc{DCGM_FI_DEV_GPU_TEMP=\"1\n"
	source := dcgm.Source{Source: told{gpus: []contract.LookGPU{{UUID: "GPU-2"}}},
		Exporter: serve(t, text(others+page(t)+others))}
	r, err := source.Look(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.Look.ExporterProblem)
	require.Equal(t, gpu.Of(345), r.Look.GPUs[0].SMClock)
}
