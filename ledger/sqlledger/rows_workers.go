package sqlledger

import (
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// How long a worker that is gone is remembered, and how many are read of a table that
// somebody has filled.
const (
	workerRemembered = 30 * 24 * time.Hour
	maxWorkers       = 256
)

type workerRow struct {
	ID    string `gorm:"column:id;primaryKey"`
	Host  string `gorm:"column:host"`
	Seen  int64  `gorm:"column:seen_at"`
	Until int64  `gorm:"column:until"`
}

func (workerRow) TableName() string { return "workers" }

func (r workerRow) toValue() (ledger.Worker, error) {
	return ledger.Worker{ID: r.ID, Host: r.Host, Seen: toTime(r.Seen), Until: toTime(r.Until)}, nil
}

func (r taskReader) Workers() ([]ledger.Worker, error) {
	return listRows[workerRow](r.newQuery().Order("seen_at DESC, id").Limit(maxWorkers), "listing workers")
}

// NoteWorker also forgets those that are gone for long.
func (t *tx) NoteWorker(w ledger.Worker, life time.Duration) error {
	now := t.Now()
	if _, err := t.execStatement("noting a worker", `INSERT INTO workers (id, host, seen_at, until)
		VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET host = excluded.host, seen_at = excluded.seen_at,
		until = excluded.until`, w.ID, w.Host, toMicros(now), toMicros(now.Add(life))); err != nil {
		return err
	}
	_, err := t.execStatement("forgetting workers that are gone", "DELETE FROM workers WHERE until < ?",
		toMicros(now.Add(-workerRemembered)))
	return err
}
