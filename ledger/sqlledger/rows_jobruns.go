package sqlledger

import (
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/runtimes"
)

// hasRun is the condition of the indexes on what ran.
const hasRun = "state IN ('completed', 'failed', 'cancelled') AND started_at > 0"

// saysHowLong is runtimes.Counts, of what has run.
const saysHowLong = "ended_at > started_at AND (state = 'completed' OR reason = 'time_limit' OR " +
	"ended_at - started_at >= 60000000)"

// endedItself is what ended by itself, of what has run.
const endedItself = "state = 'completed' OR reason IN ('exit', 'signal', 'oom')"

// runRow is what says of a job how long it ran.
type runRow struct {
	Name        string
	SubmittedBy string
	UserID      string
	Nodes       int
	PerNode     int
	Short       int
	Reason      string
	State       string
	Attempt     int
	GPUTime     int64 `gorm:"column:gpu_time"`
	StartedAt   int64
	EndedAt     int64
}

func (r jobReader) JobRuns(organizationID, name string, limit int) ([]runtimes.Run, error) {
	db := r.newQuery().Table("jobs").Select("name, submitted_by, user_id, nodes, per_node, short, reason, state, "+
		"attempt, gpu_time, started_at, ended_at").Where("organization_id = ?", organizationID).
		Where(hasRun).Where(saysHowLong)
	if name != "" {
		db = db.Where("name = ?", name)
	}
	var rows []runRow
	if err := db.Order("ended_at DESC").Limit(limit).Scan(&rows).Error; err != nil {
		return nil, wrapError("reading how long jobs ran", err)
	}
	runs := make([]runtimes.Run, 0, len(rows))
	for _, row := range rows {
		j, err := row.toJob()
		if err != nil {
			return nil, err
		}
		if run, says := runtimes.RunOf(j); says {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

func (r runRow) toJob() (job.Job, error) {
	return job.Restore(job.Job{Name: r.Name, SubmittedBy: r.SubmittedBy, UserID: r.UserID,
		Shape: capacity.Shape{Nodes: r.Nodes, PerNode: r.PerNode, Short: r.Short}, Reason: r.Reason, Attempt: r.Attempt,
		GPUTime:   toDuration(r.GPUTime),
		StartedAt: toTime(r.StartedAt), EndedAt: toTime(r.EndedAt)}, job.State(r.State))
}
