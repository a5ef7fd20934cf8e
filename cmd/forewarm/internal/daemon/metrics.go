package daemon

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger/ledgermetrics"
	"github.com/forewarm/forewarm/server"
)

// registerGauges adds what is read when the registry is scraped: the ledger's
// levels, what waits here, and the state of the connections to its database.
func (a *app) registerGauges() error {
	for _, c := range []prometheus.Collector{
		ledgermetrics.NewCollector(a.store, a.clock),
		ledgermetrics.NewWaiting(a.ledger.Waiting),
		collectors.NewDBStatsCollector(a.store.DB(), "ledger"),
	} {
		if err := a.registry.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// showFromStart shows the counters at 0 that begin with what is known of the ledger and of plans.
func showFromStart(m *obs.Metrics) {
	m.ShowFromStart(map[string][]string{
		obs.Node:        wordsOf(node.Machine.States),
		obs.Reservation: append(wordsOf(reservation.Machine.States), "degraded", "restored", "moved"),
		obs.Allocation:  wordsOf(allocation.Machine.States),
	}, []string{plan.HeldRefused, plan.HeldUnfit, plan.HeldTrial, plan.HeldCapped})
}

func wordsOf[S ~string](states []S) []string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return words
}

// metricsHandler shows a worker's metrics, that its process lives, and whether it
// can do its work; note tells, in a line, of what it does without.
func (a *app) metricsHandler(note func() string) http.Handler {
	ready := &server.Readiness{Store: a.store, Clock: a.clock, Logger: a.log, Metric: a.metrics, Note: note}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", ready.Metrics(a.registry))
	mux.Handle("GET /readyz", ready)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	return mux
}
