package daemon

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

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
