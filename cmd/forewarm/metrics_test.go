package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
)

var documentedMetric = regexp.MustCompile("(?m)^\\| `(forewarm_[a-z_]+)` \\| (counter|histogram|gauge) \\|")

// documentedMetrics are the metrics of the manual, with their types.
func documentedMetrics(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	types := map[string]string{}
	for _, row := range documentedMetric.FindAllSubmatch(page, -1) {
		types[string(row[1])] = string(row[2])
	}
	require.NotEmpty(t, types)
	return types
}

// scrapes collects what a server's metrics were, again and again.
type scrapes struct {
	door   *door
	key    string
	types  map[string]string             // families that were ever shown
	values map[string]map[string]float64 // the latest of each series, by family
	moved  map[string]bool               // families of which a series changed, or began at more than 0
}

var (
	typeLine   = regexp.MustCompile(`^# TYPE (forewarm_\S+) (\S+)$`)
	sampleLine = regexp.MustCompile(`^((forewarm_[a-z_]+?)(?:_bucket|_sum|_count)?(?:\{.*\})?) (\S+)$`)
)

// newRequest reads a path, wherever the server is.
func newRequest(t *testing.T, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://forewarm.invalid"+path, nil)
	require.NoError(t, err)
	return r
}

// scrapeMetrics scrapes once.
func (s *scrapes) scrapeMetrics(t *testing.T) {
	t.Helper()
	r := newRequest(t, "/metrics")
	r.Header.Set("Authorization", "Bearer "+s.key)
	answer, err := s.door.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if found := typeLine.FindStringSubmatch(line); found != nil {
			s.types[found[1]] = found[2]
		} else if found := sampleLine.FindStringSubmatch(line); found != nil {
			value, err := strconv.ParseFloat(found[3], 64)
			require.NoError(t, err, line)
			s.noteSample(found[2], found[1], value)
		}
	}
}

func (s *scrapes) noteSample(family, series string, value float64) {
	if s.values[family] == nil {
		s.values[family] = map[string]float64{}
	}
	before, known := s.values[family][series]
	s.moved[family] = s.moved[family] || known && before != value || !known && value > 0
	s.values[family][series] = value
}

// elsewhere are the metrics that move when something is wrong: tests in
// ledger/ledgermetrics and worker make it so. Others need a second server, as in
// TestTwoServersShareTheirWork, or a daemon on a node, as in TestSessionsAreCounted of package server.
var elsewhere = map[string]bool{"forewarm_task_lag_seconds": true, "forewarm_node_requests_withheld_total": true,
	"forewarm_queue_up": true, "forewarm_pool_recovering": true, "forewarm_tasks_failing": true,
	"forewarm_journal_seals_behind": true, "forewarm_changes_waiting": true, "forewarm_observation_blind_seconds": true,
	"forewarm_server_leads": true, "forewarm_requests_forwarded_total": true,
	"forewarm_node_daemons": true, "forewarm_gpu_utilization_ratio": true, "forewarm_gpu_memory_used_bytes": true,
	"forewarm_gpu_temperature_celsius": true, "forewarm_gpu_power_watts": true, "forewarm_gpu_unhealthy": true,
	"forewarm_gpu_clock_hertz": true, "forewarm_gpu_throttled": true, "forewarm_gpu_ecc_errors_total": true,
	"forewarm_gpu_remapped_rows": true, "forewarm_gpu_xids_total": true, "forewarm_gpu_last_xid": true,
	"forewarm_gpu_nvlink_errors_total": true, "forewarm_gpu_nvlinks_up": true,
	"forewarm_gpu_nvlink_bytes_per_second": true, "forewarm_gpu_sm_activity_ratio": true,
	"forewarm_gpu_pcie_generation": true, "forewarm_gpu_pcie_width_lanes": true,
	"forewarm_gpu_pcie_bytes_per_second": true,
	"forewarm_node_streams":              true, "forewarm_sessions": true, "forewarm_sessions_ended_total": true}

// watchedCluster is a simulated cluster beside the cloud, in which work begins every few
// seconds, and watchedPool the pool that watches it.
const (
	watchedCluster = `provisioners:
  - kind: simcluster
    config:
      name: cluster
      suspend_time: 1m
      offers:
        - {type: sim-4, model: h100, gpus: 4, memory_mib: 81920, price_per_hour: 12, boot: {p50: 1s, p95: 2s}, nodes: 2}
      work: [{name: short, user: ann, type: sim-4, gpus: 1, every: 3s, length: 1s}]
`
	watchedPool = `  - {name: watched, provisioner: cluster, region: sim-1, instance_type: sim-4, max_nodes: 2}
`
)

// One story moves every metric there is, and every metric there is is in the
// manual.
func TestEveryMetricMoves(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeConfig(t, strings.Replace(fmt.Sprintf(cloudConfig, h.dataDir(), h.cloudFile()), "provisioners:\n",
		watchedCluster, 1)+watchedPool+"cycle_records: {folder: "+filepath.Join(h.dataDir(), "cycles")+"}\n")
	p, d, api := h.startUp(t, "--config", h.configFile())
	key := h.savedKey(t)
	s := &scrapes{door: d, key: key, types: map[string]string{}, values: map[string]map[string]float64{},
		moved: map[string]bool{}}
	want := documentedMetrics(t)
	s.scrapeMetrics(t)
	for _, series := range []string{`forewarm_requests_forwarded_total{outcome="lost"}`,
		`forewarm_node_requests_withheld_total{reason="creation_capped"}`,
		`forewarm_reservation_transitions_total{event="failed"}`} {
		family, _, _ := strings.Cut(series, "{")
		require.Contains(t, s.values[family], series, "it is there before it counts anything")
	}
	ready, err := d.Do(newRequest(t, "/readyz"))
	require.NoError(t, err)
	require.NoError(t, ready.Body.Close())

	half, borrow := 500, true
	eventually(t, patience, func() string { // the row changes, too, when a boot is learned of
		pool, err := api.Pool(t.Context(), "load")
		require.NoError(t, err)
		_, err = api.PatchPool(t.Context(), "load", pool.Version,
			contract.PoolPatch{OnlineShare: &half, BorrowIdle: &borrow})
		if err != nil {
			return err.Error()
		}
		return ""
	})
	hour := time.Now().Add(time.Hour)
	reserve := contract.ReservationCreate{Pool: "load", GPUs: 6, Start: hour, End: hour.Add(time.Hour), Queue: true}
	for range 2 { // the second finds no place
		_, err = api.Reserve(t.Context(), reserve, client.Options{})
		require.NoError(t, err)
	}
	_, err = api.Allocation(t.Context(), "alc_00000000000000000000000000")
	require.Error(t, err)
	a, err := api.Allocate(t.Context(), contract.AllocationCreate{Pool: "load", GPUs: 4}, client.Options{})
	require.NoError(t, err)
	_, err = api.SubmitJob(t.Context(), contract.JobCreate{Pool: "load", GPUs: 1, Command: []string{"true"},
		NotBefore: hour}, client.Options{})
	require.NoError(t, err)
	_, err = api.SubmitJob(t.Context(), contract.JobCreate{Pool: "load", GPUs: 1, Command: []string{"true"}},
		client.Options{})
	require.NoError(t, err)
	eventually(t, patience, func() string {
		s.scrapeMetrics(t)
		var still []string
		for name := range want {
			if !s.moved[name] && !elsewhere[name] {
				still = append(still, name)
			}
		}
		if len(still) > 0 {
			return fmt.Sprint("these have not moved: ", still)
		}
		return ""
	})
	for name, kind := range s.types {
		require.Equal(t, want[name], kind, "%s in docs/metrics.md", name)
	}
	for name := range want {
		if !elsewhere[name] {
			require.Contains(t, s.types, name, "each documented metric is shown")
		}
	}
	a, err = api.Allocation(t.Context(), a.ID)
	require.NoError(t, err)
	require.Equal(t, "active", a.State)
	require.GreaterOrEqual(t, s.values["forewarm_allocation_wait_seconds"]["forewarm_allocation_wait_seconds_count"], 1.0)
	require.Zero(t, p.stop(t, ending), p.errors.String())
}

// upSeries is what Prometheus itself knows of those that it scrapes.
var upSeries = regexp.MustCompile(`^up\{`)

var metricName = regexp.MustCompile(`\bforewarm_[a-z_]+`)

// labelValues are the values that the rules compare labels of metrics with, and that there are.
var labelValues = map[string][]string{
	"forewarm_node_daemons": {"online", "silent", "none"},
	"forewarm_nodes":        wordsOf(node.Machine.States), "forewarm_jobs": wordsOf(job.Machine.States),
	"forewarm_gpus":               {"held", "booked", "free", "coming", "unavailable"},
	"forewarm_queue_length":       {"allocations", "waitlist", "jobs"},
	"forewarm_workload_gpus_used": {"online", "batch"}, "forewarm_workload_gpus_limit": {"online", "batch"},
}

func wordsOf[S ~string](states []S) (words []string) {
	for _, s := range states {
		words = append(words, string(s))
	}
	return words
}

var matchedLabel = regexp.MustCompile(`\b(forewarm_[a-z_]+)\{(?:state|queue|workload)=~?"([^"]+)"\}`)

// alerted are metrics of what people are to be woken for, or told of.
var alerted = []string{"forewarm_ready", "forewarm_ledger_up", "forewarm_task_lag_seconds", "forewarm_tasks_failing",
	"forewarm_node_daemons", "forewarm_gpu_unhealthy", "forewarm_observation_blind_seconds", "forewarm_jobs",
	`forewarm_nodes{state="quarantined"}`, `forewarm_nodes{state="needs_attention"}`}

// The rules for Prometheus speak of metrics that there are.
func TestRulesOfPrometheus(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/prometheus/rules.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Record, Alert, Expr, For string
				Labels, Annotations      map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	known := documentedMetrics(t)
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	alerts := ""
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			require.NotEqual(t, rule.Record == "", rule.Alert == "", "%+v", rule)
			names := metricName.FindAllString(rule.Expr, -1)
			require.NotEmpty(t, append(names, upSeries.FindAllString(rule.Expr, -1)...), rule.Expr)
			for _, name := range names {
				name = strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
				require.Contains(t, known, name)
			}
			for _, match := range matchedLabel.FindAllStringSubmatch(rule.Expr, -1) {
				for value := range strings.SplitSeq(match[2], "|") {
					require.Contains(t, labelValues[match[1]], value, rule.Expr)
				}
			}
			if rule.Alert != "" {
				alerts += rule.Expr + "\n"
				require.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"], rule.Alert)
				require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			}
			if group.Name == "forewarm-aliases" {
				require.Contains(t, string(page), "`"+rule.Record+"`")
			}
		}
	}
	for _, what := range alerted {
		require.Contains(t, alerts, what, "there is an alert for it")
	}
}
