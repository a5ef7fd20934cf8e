package sqlledger

import "github.com/forewarm/forewarm/ledger"

type taskRow struct {
	ID            string `gorm:"column:id;primaryKey"`
	Kind          string `gorm:"column:kind"`
	Subject       string `gorm:"column:subject"`
	Key           string `gorm:"column:key"`
	State         string `gorm:"column:state"`
	Attempt       int    `gorm:"column:attempt"`
	RunAt         int64  `gorm:"column:run_at"`
	WakeAt        int64  `gorm:"column:wake_at"`
	Dispatches    int    `gorm:"column:dispatches"`
	DispatchAfter int64  `gorm:"column:dispatch_after"`
	Fence         int    `gorm:"column:fence"`
	LeaseUntil    int64  `gorm:"column:lease_until"`
	LastError     string `gorm:"column:last_error"`
	Failures      int    `gorm:"column:failures"`
	FailedAt      int64  `gorm:"column:failed_at"`
	Created       int64  `gorm:"column:created_at"`
	Finished      int64  `gorm:"column:finished_at"`
}

func (taskRow) TableName() string { return "tasks" }

// taskToRow returns a new row. The store alone records how far a task has got.
func taskToRow(t ledger.Task) taskRow {
	return taskRow{
		ID: t.ID, Kind: t.Kind, Subject: t.Subject, Key: t.Key, State: string(ledger.TaskReady),
		RunAt: toMicros(t.RunAt), Created: toMicros(t.CreatedAt),
	}
}

func (r taskRow) toValue() (ledger.Task, error) {
	return ledger.Task{
		ID: r.ID, Kind: r.Kind, Subject: r.Subject, Key: r.Key, State: ledger.TaskState(r.State),
		Attempt: r.Attempt, RunAt: toTime(r.RunAt), WakeAt: toTime(r.WakeAt), Dispatches: r.Dispatches,
		Fence: r.Fence, LeaseUntil: toTime(r.LeaseUntil), LastError: r.LastError, Failures: r.Failures,
		FailedAt: toTime(r.FailedAt), CreatedAt: toTime(r.Created),
	}, nil
}
