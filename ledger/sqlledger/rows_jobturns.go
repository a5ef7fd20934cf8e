package sqlledger

import (
	"cmp"
	"errors"

	"github.com/forewarm/forewarm/ledger"
)

type turnsRow struct {
	PoolID    string `gorm:"column:pool_id;primaryKey"`
	DecidedAt int64  `gorm:"column:decided_at"`
	Jobs      string `gorm:"column:jobs"`
	Ahead     string `gorm:"column:ahead"`
}

func (turnsRow) TableName() string { return "job_turns" }

const replaceTurns = "ON CONFLICT (pool_id) DO UPDATE SET decided_at = excluded.decided_at, jobs = excluded.jobs, " +
	"ahead = excluded.ahead"

func turnsToRow(t ledger.JobTurns) turnsRow {
	return turnsRow{PoolID: t.PoolID, DecidedAt: toMicros(t.DecidedAt), Jobs: packValue(t.Next),
		Ahead: packValue(t.Ahead)}
}

// toValue reads a row. What cannot be read follows from the queue, and is decided anew: that holds up nobody.
func (r turnsRow) toValue() (ledger.JobTurns, error) {
	next, err1 := unpackValue[[]ledger.JobTurn]("jobs", r.Jobs)
	ahead, err2 := unpackValue[[]ledger.JobAhead]("ahead", cmp.Or(r.Ahead, "[]")) // empty: who wrote it knew of none
	if err := errors.Join(err1, err2); err != nil {
		return ledger.JobTurns{PoolID: r.PoolID, Damaged: true}, nil
	}
	return ledger.JobTurns{PoolID: r.PoolID, DecidedAt: toTime(r.DecidedAt), Next: next, Ahead: ahead}, nil
}

func (r jobReader) JobTurns(poolID string) (ledger.JobTurns, error) {
	t, found, err := findRow[turnsRow](r.newQuery().Where("pool_id = ?", poolID),
		"reading whose turn it is in pool "+poolID)
	if err != nil || !found {
		return ledger.JobTurns{PoolID: poolID}, err
	}
	return t, nil
}
