package ledgermetrics

import "github.com/prometheus/client_golang/prometheus"

var waiting = newGauge("changes_waiting",
	"Changes that wait in this process: for their turn, or for a row that somebody else holds.", "for")

// Waiting shows how many changes wait in this process, as count returns it: for their
// turn, and for rows that somebody else holds. It is safe for concurrent use if count
// is.
type Waiting struct{ count func() (turn, row int) }

// NewWaiting returns a collector that calls count when it is scraped.
func NewWaiting(count func() (turn, row int)) Waiting { return Waiting{count: count} }

// Describe names the gauge.
func (w Waiting) Describe(descs chan<- *prometheus.Desc) { descs <- waiting.Desc }

// Collect sends the gauge for each of what is waited for.
func (w Waiting) Collect(metrics chan<- prometheus.Metric) {
	turn, row := w.count()
	metrics <- waiting.withValue(float64(turn), "turn")
	metrics <- waiting.withValue(float64(row), "row")
}
