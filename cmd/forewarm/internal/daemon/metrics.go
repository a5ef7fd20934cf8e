package daemon

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/forewarm/forewarm/ledger/ledgermetrics"
)

// registerGauges adds what is read when the registry is scraped: the ledger's
// levels and the state of the connections to its database.
func (a *app) registerGauges() error {
	for _, c := range []prometheus.Collector{
		ledgermetrics.NewCollector(a.store, a.clock),
		collectors.NewDBStatsCollector(a.store.DB(), "ledger"),
	} {
		if err := a.registry.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// metricsHandler shows a worker's metrics, and that its process lives.
func (a *app) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	return mux
}
