package obs

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics are the program's own numbers. No label ever holds an id: the number
// of series must not grow with tenants or time. A nil *Metrics records nothing.
type Metrics struct {
	httpRequests *prometheus.CounterVec
	httpDuration *prometheus.HistogramVec
	answers      sync.Map // answer → *answerSeries: what the labels of an answer lead to
	tasks        *prometheus.CounterVec
	taskDuration *prometheus.HistogramVec
	dispatches   *prometheus.CounterVec
	transitions  map[string]*prometheus.CounterVec // by the kind of subject
	wait         prometheus.Histogram
	ready        prometheus.Gauge
	queue        *prometheus.GaugeVec // without labels: only who uses a queue shows it
	withheld     *prometheus.CounterVec
	observed     *prometheus.CounterVec
	observations *prometheus.CounterVec
	sealsBehind  prometheus.Gauge
	nodeStreams  prometheus.Gauge
	sessions     *prometheus.GaugeVec
	sessionsOver *prometheus.CounterVec
	forwarded    *prometheus.CounterVec
	cycles       *prometheus.CounterVec
	leads        *prometheus.GaugeVec // without labels: only a server among others shows it
}

// The subjects whose transitions are counted.
const (
	Node        = "node"
	Reservation = "reservation"
	Allocation  = "allocation"
)

var (
	requestSeconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	taskSeconds    = []float64{.01, .05, .25, 1, 5, 15, 60, 180, 600}
	// A start that waited 5 s or less counts as zero wait, so that must be a bound.
	waitSeconds = []float64{.1, .5, 1, 2, 5, 15, 30, 60, 120, 300, 600, 1800, 3600}
)

// NewRegistry returns a registry that already holds the numbers of the Go
// runtime and of the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// NewMetrics makes the metrics and registers them. It fails if the registerer
// already holds one of that name.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		httpRequests: newCounter("http_requests_total", "Requests answered.", "route", "method", "status"),
		httpDuration: newHistogram("http_request_duration_seconds", "Time to answer a request.", requestSeconds,
			"route",
			"method", "status"),
		tasks:        newCounter("tasks_total", "Task attempts ended.", "kind", "outcome"),
		taskDuration: newHistogram("task_duration_seconds", "Time a task attempt took.", taskSeconds, "kind"),
		dispatches:   newCounter("queue_dispatch_total", "Messages handed to the queue.", "outcome"),
		transitions: map[string]*prometheus.CounterVec{
			Node: newCounter("node_transitions_total", "Journalled events of nodes, by what became of them.",
				"event"),
			Reservation: newCounter("reservation_transitions_total", "Journalled events of reservations, likewise.",
				"event"),
			Allocation: newCounter("allocation_transitions_total", "Journalled events of allocations, likewise.",
				"event"),
		},
		ready: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "forewarm", Name: "ready",
			Help: "Whether the last look at /readyz found that the database accepts writes and work is done: 1, " +
				"or 0.",
		}),
		queue: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "forewarm", Name: "queue_up",
			Help: "1 while Redis takes messages; at 0 this worker does due work straight from the database.",
		}, nil),
		sealsBehind: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "forewarm", Name: "journal_seals_behind",
			Help: "Whether seals of the journal that this process has seen are not in the database any more: 1, or 0.",
		}),
		nodeStreams: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "forewarm", Name: "node_streams",
			Help: "Daemons of nodes that are attached to this server, so that sessions can be opened there.",
		}),
		sessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "forewarm", Name: "sessions",
			Help: "Sessions on nodes whose users are connected to this server, by kind: exec or port.",
		}, []string{"kind"}),
		sessionsOver: newCounter("sessions_ended_total",
			"Sessions on nodes that ended, by kind and why: exit, or a code such as lease_over.", "kind", "code"),
		forwarded: newCounter("requests_forwarded_total",
			"Requests sent on to the server that decides, by what came back.", "outcome"),
		cycles: newCounter("cycle_records_total",
			"Looks at queues of jobs that were to be recorded, by what became of them: kept, or lost.", "outcome"),
		leads: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "forewarm", Name: "server_leads",
			Help: "1 if this server decides what all servers are asked to change, else 0.",
		}, nil),
		withheld: newCounter("node_requests_withheld_total",
			"Times that a plan needed a node and could not ask for it.",
			"reason"),
		observed: newCounter("observed_starts_total",
			"Work that a cluster's own scheduler began, by whether it found nodes that were kept warm: warm, or other.",
			"provisioner", "start"),
		observations: newCounter("observations_total",
			"Looks at what a cluster's own scheduler did, by whether work may have been missed.",
			"provisioner", "complete"),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "forewarm", Name: "allocation_wait_seconds",
			Help: "Time from asking for GPUs to having them. Up to 5 s counts as zero wait.", Buckets: waitSeconds,
		}),
	}
	for _, c := range m.allCollectors() {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

// Request records one answered HTTP request. The route is the pattern that
// matched, such as /v1/pools/{id}, never the path; empty means none did.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	if m == nil {
		return
	}
	series := m.seriesOf(answer{cmp.Or(route, "unmatched"), knownMethod(method), statusClass(status)})
	series.requests.Inc()
	series.duration.Observe(took.Seconds())
}

// answer is what answers are counted by.
type answer struct{ route, method, class string }

// answerSeries are the numbers of answers that have the same labels.
type answerSeries struct {
	requests prometheus.Counter
	duration prometheus.Observer
}

func (m *Metrics) seriesOf(a answer) *answerSeries {
	if known, ok := m.answers.Load(a); ok {
		return known.(*answerSeries)
	}
	made, _ := m.answers.LoadOrStore(a, &answerSeries{
		requests: m.httpRequests.WithLabelValues(a.route, a.method, a.class),
		duration: m.httpDuration.WithLabelValues(a.route, a.method, a.class),
	})
	return made.(*answerSeries)
}

// Task records the end of one attempt of a task of the kind.
func (m *Metrics) Task(kind, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	m.tasks.WithLabelValues(kind, outcome).Inc()
	m.taskDuration.WithLabelValues(kind).Observe(took.Seconds())
}

// Dispatch records one message that was, or could not be, handed to the queue.
func (m *Metrics) Dispatch(outcome string) {
	if m == nil {
		return
	}
	m.dispatches.WithLabelValues(outcome).Inc()
}

// Transition records what became of a subject of the kind, such as a node that is
// ready. A kind that is not counted is ignored.
func (m *Metrics) Transition(subject, event string) {
	if m == nil {
		return
	}
	if c, ok := m.transitions[subject]; ok {
		c.WithLabelValues(event).Inc()
	}
}

// Ready records whether this instance can do its work.
func (m *Metrics) Ready(ready bool) {
	if m == nil {
		return
	}
	m.ready.Set(0)
	if ready {
		m.ready.Set(1)
	}
}

// Queue records whether the queue between workers takes messages.
func (m *Metrics) Queue(up bool) {
	if m == nil {
		return
	}
	value := 0.0
	if up {
		value = 1
	}
	m.queue.WithLabelValues().Set(value)
}

// Wait records how long an allocation waited from the request to its GPUs.
func (m *Metrics) Wait(d time.Duration) {
	if m == nil {
		return
	}
	m.wait.Observe(d.Seconds())
}

// Withheld records that a plan needed a node and could not ask for it, by a code
// of core/plan.
func (m *Metrics) Withheld(reason string) {
	if m == nil {
		return
	}
	m.withheld.WithLabelValues(reason).Inc()
}

// Observed records one look at a cluster: how much work had begun, how much of it on
// nodes that were kept warm, and whether the look missed nothing.
func (m *Metrics) Observed(provisioner string, started, warm int, complete bool) {
	if m == nil {
		return
	}
	m.observed.WithLabelValues(provisioner, "warm").Add(float64(warm))
	m.observed.WithLabelValues(provisioner, "other").Add(float64(started - warm))
	m.observations.WithLabelValues(provisioner, strconv.FormatBool(complete)).Inc()
}

// SealsBehind records whether seals of the journal are missing that this process
// has seen.
func (m *Metrics) SealsBehind(behind bool) {
	if m == nil {
		return
	}
	m.sealsBehind.Set(0)
	if behind {
		m.sealsBehind.Set(1)
	}
}

// NodeStreams records that so many more daemons of nodes are attached.
func (m *Metrics) NodeStreams(change int) {
	if m != nil {
		m.nodeStreams.Add(float64(change))
	}
}

// SessionBegan records that a session of a kind began.
func (m *Metrics) SessionBegan(kind string) {
	if m != nil {
		m.sessions.WithLabelValues(kind).Inc()
	}
}

// SessionEnded records how a session of a kind ended. An empty code is an exit of its own.
func (m *Metrics) SessionEnded(kind, code string) {
	if m != nil {
		m.sessions.WithLabelValues(kind).Dec()
		m.sessionsOver.WithLabelValues(kind, cmp.Or(code, "exit")).Inc()
	}
}

func (m *Metrics) allCollectors() []prometheus.Collector {
	all := []prometheus.Collector{m.httpRequests, m.httpDuration, m.tasks, m.taskDuration, m.dispatches, m.wait,
		m.ready, m.queue, m.withheld, m.observed, m.observations, m.sealsBehind, m.forwarded, m.leads, m.nodeStreams,
		m.sessions, m.sessionsOver, m.cycles}
	for _, c := range m.transitions {
		all = append(all, c)
	}
	return all
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "forewarm", Name: name, Help: help}, labels)
}

func newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: "forewarm", Name: name, Help: help, Buckets: buckets}, labels)
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions,
}

// knownMethod keeps a client from making series by inventing methods.
func knownMethod(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

var classes = [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}

func statusClass(status int) string {
	if status < 100 || status > 599 {
		return "other"
	}
	return classes[status/100-1]
}
