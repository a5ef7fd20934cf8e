package sqlledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/ledger"
)

type jobRow struct {
	Head           rowHead `gorm:"embedded"`
	OrganizationID string  `gorm:"column:organization_id"`
	PoolID         string  `gorm:"column:pool_id"`
	Name           string  `gorm:"column:name"`
	SubmittedBy    string  `gorm:"column:submitted_by"`
	UserID         string  `gorm:"column:user_id"`
	Priority       string  `gorm:"column:priority"`
	Nodes          int     `gorm:"column:nodes"`
	PerNode        int     `gorm:"column:per_node"`
	Short          int     `gorm:"column:short"`
	Spec           string  `gorm:"column:spec"`
	Input          []byte  `gorm:"column:input;<-:create"`
	ArrayID        string  `gorm:"column:array_id"`
	ArrayIndex     int     `gorm:"column:array_index"`
	NotBefore      int64   `gorm:"column:not_before"`
	Attempt        int     `gorm:"column:attempt"`
	AllocationID   string  `gorm:"column:allocation_id"`
	Failures       int     `gorm:"column:failures"`
	Losses         int     `gorm:"column:losses"`
	Preemptions    int     `gorm:"column:preemptions"`
	Ending         string  `gorm:"column:ending"`
	Reason         string  `gorm:"column:reason"`
	AttemptEnd     string  `gorm:"column:attempt_end"`
	GPUTime        int64   `gorm:"column:gpu_time"`
	Cost           int64   `gorm:"column:cost"`
	State          string  `gorm:"column:state"`
	Submitted      int64   `gorm:"column:submitted_at"`
	Eligible       int64   `gorm:"column:eligible_at"`
	Scheduled      int64   `gorm:"column:scheduled_at"`
	Started        int64   `gorm:"column:started_at"`
	Ended          int64   `gorm:"column:ended_at"`
	PredictedP10   int64   `gorm:"column:predicted_p10"`
	PredictedP50   int64   `gorm:"column:predicted_p50"`
	PredictedP90   int64   `gorm:"column:predicted_p90"`
}

func (jobRow) TableName() string  { return "jobs" }
func (r jobRow) rowHead() rowHead { return r.Head }

// jobSpec is what is asked for in no query of a job. Of that Avoids alone changes.
type jobSpec struct {
	Arguments    []string          `json:"arguments"`
	Directory    string            `json:"directory,omitempty"`
	Environment  map[string]string `json:"environment,omitempty"`
	Slurm        bool              `json:"slurm,omitempty"`
	Image        string            `json:"image,omitempty"`
	Mounts       []job.Mount       `json:"mounts,omitempty"`
	MaxRuntime   time.Duration     `json:"max_runtime"`
	Grace        time.Duration     `json:"grace"`
	Checkpoint   job.Checkpoint    `json:"checkpoint,omitzero"`
	Retries      job.Retries       `json:"retries,omitzero"`
	Preemptible  bool              `json:"preemptible,omitempty"`
	Dependencies []job.Depends     `json:"dependencies,omitempty"`
	Reservation  string            `json:"reservation,omitempty"`
	Workload     capacity.Workload `json:"workload,omitempty"`
	Array        job.Array         `json:"array,omitzero"` // without its id
	Where        job.Where         `json:"where,omitzero"`
	Avoids       []string          `json:"avoids,omitempty"`
	Awaited      job.Awaited       `json:"awaited,omitzero"`
}

func jobToRow(j job.Job) jobRow {
	array := j.Array
	array.ID = ""
	return jobRow{
		Head: nextVersion(j.ID, j.Version), OrganizationID: j.OrganizationID, PoolID: j.PoolID, Name: j.Name,
		SubmittedBy: j.SubmittedBy, UserID: j.UserID, Priority: string(j.Priority),
		Nodes: j.Shape.Nodes, PerNode: j.Shape.PerNode, Short: j.Shape.Short,
		Spec: packValue(jobSpec{Arguments: j.Command.Arguments, Directory: j.Command.Directory,
			Environment: j.Command.Environment, Slurm: j.Command.Slurm, Image: j.Command.Image, Mounts: j.Command.Mounts,
			MaxRuntime: j.MaxRuntime, Grace: j.Grace, Checkpoint: j.Checkpoint, Retries: j.Retries,
			Preemptible: j.Preemptible, Dependencies: j.Dependencies, Reservation: j.Reservation,
			Workload: j.Workload, Array: array,
			Where: j.Where, Avoids: j.Avoids, Awaited: j.Awaited}),
		Input: notNil(j.Command.Input), ArrayID: j.Array.ID, ArrayIndex: j.ArrayIndex, NotBefore: toMicros(j.NotBefore),
		Attempt: j.Attempt, AllocationID: j.AllocationID, Failures: j.Failures, Losses: j.Losses,
		Preemptions: j.Preemptions, Ending: packEnding(j.Ending), Reason: j.Reason,
		AttemptEnd: packValue(j.End), GPUTime: j.GPUTime.Microseconds(), Cost: int64(j.Cost), State: string(j.State()),
		Submitted: toMicros(j.SubmittedAt), Eligible: toMicros(j.EligibleAt), Scheduled: toMicros(j.ScheduledAt),
		Started: toMicros(j.StartedAt), Ended: toMicros(j.EndedAt), PredictedP10: j.Predicted.P10.Microseconds(),
		PredictedP50: j.Predicted.P50.Microseconds(), PredictedP90: j.Predicted.P90.Microseconds(),
	}
}

func (r jobRow) toValue() (job.Job, error) {
	spec, err1 := unpackValue[jobSpec]("spec", r.Spec)
	end, err2 := unpackValue[job.End]("attempt_end", r.AttemptEnd)
	ending, err3 := unpackEnding(r.Ending)
	if err := errors.Join(err1, err2, err3); err != nil {
		return job.Job{}, err
	}
	spec.Array.ID = r.ArrayID
	return job.Restore(job.Job{
		ID: r.Head.ID, OrganizationID: r.OrganizationID, PoolID: r.PoolID, Name: r.Name,
		SubmittedBy: r.SubmittedBy, UserID: r.UserID, Priority: job.Priority(r.Priority),
		Shape: capacity.Shape{Nodes: r.Nodes, PerNode: r.PerNode, Short: r.Short},
		Command: job.Command{Arguments: spec.Arguments, Directory: spec.Directory, Environment: spec.Environment,
			Input: orNil(r.Input), Slurm: spec.Slurm, Image: spec.Image, Mounts: spec.Mounts},
		MaxRuntime: spec.MaxRuntime, Grace: spec.Grace, Checkpoint: spec.Checkpoint, Retries: spec.Retries,
		Preemptible: spec.Preemptible, Preemptions: r.Preemptions, Ending: ending,
		Dependencies: spec.Dependencies, Reservation: spec.Reservation, Workload: spec.Workload,
		Array: spec.Array, ArrayIndex: r.ArrayIndex,
		Where: spec.Where, Avoids: spec.Avoids, Awaited: spec.Awaited, NotBefore: toTime(r.NotBefore),
		Attempt: r.Attempt, AllocationID: r.AllocationID, Failures: r.Failures, Losses: r.Losses, Reason: r.Reason,
		End: end, GPUTime: toDuration(r.GPUTime), Cost: money.MicroUSD(r.Cost),
		SubmittedAt: toTime(r.Submitted), EligibleAt: toTime(r.Eligible), ScheduledAt: toTime(r.Scheduled),
		StartedAt: toTime(r.Started), EndedAt: toTime(r.Ended), Version: r.Head.Version,
		Predicted: job.Predicted{P10: toDuration(r.PredictedP10), P50: toDuration(r.PredictedP50),
			P90: toDuration(r.PredictedP90)},
	}, job.State(r.State))
}

type rankRow struct {
	JobID      string `gorm:"column:job_id;primaryKey"`
	Attempt    int    `gorm:"column:attempt;primaryKey"`
	Rank       int    `gorm:"column:rank;primaryKey"`
	NodeID     string `gorm:"column:node_id"`
	State      string `gorm:"column:state"`
	AttemptEnd string `gorm:"column:attempt_end"`
}

func (rankRow) TableName() string { return "job_ranks" }

const replaceRank = "ON CONFLICT (job_id, attempt, rank) DO UPDATE SET state = excluded.state, " +
	"attempt_end = excluded.attempt_end"

func rankToRow(r job.Rank) rankRow {
	return rankRow{JobID: r.JobID, Attempt: r.Attempt, Rank: r.Rank, NodeID: r.NodeID, State: string(r.State),
		AttemptEnd: packValue(r.End)}
}

func (r rankRow) toValue() (job.Rank, error) {
	end, err := unpackValue[job.End]("attempt_end", r.AttemptEnd)
	return job.Rank{JobID: r.JobID, Attempt: r.Attempt, Rank: r.Rank, NodeID: r.NodeID, State: job.RankState(r.State),
		End: end}, err
}

type outputRow struct {
	JobID   string `gorm:"column:job_id;primaryKey"`
	Attempt int    `gorm:"column:attempt;primaryKey"`
	Rank    int    `gorm:"column:rank;primaryKey"`
	Start   int64  `gorm:"column:starts_at;primaryKey"`
	End     int64  `gorm:"column:ends_at"`
	Pieces  []byte `gorm:"column:pieces"`
}

func (outputRow) TableName() string { return "job_output" }

const keepOutput = "ON CONFLICT (job_id, attempt, rank, starts_at) DO NOTHING"

func outputToRow(o ledger.JobOutput) outputRow {
	return outputRow{JobID: o.JobID, Attempt: o.Attempt, Rank: o.Rank, Start: o.Start, End: o.End,
		Pieces: []byte(packValue(o.Pieces))}
}

func (r outputRow) toValue() (ledger.JobOutput, error) {
	pieces, err := unpackValue[[]ledger.JobPiece]("pieces", string(r.Pieces))
	return ledger.JobOutput{JobID: r.JobID, Attempt: r.Attempt, Rank: r.Rank, Start: r.Start, End: r.End,
		Pieces: pieces}, err
}

// trimOutput deletes parts of output that are not kept any more.
func trimOutput(s changeWriter, all []ledger.TrimmedOutput) {
	for _, t := range all {
		s.execStatement("trimming the output of job "+t.JobID, "DELETE FROM job_output WHERE job_id = ? AND attempt = ? "+
			"AND rank = ? AND starts_at >= ? AND ends_at <= ?", nil, t.JobID, int64(t.Attempt), int64(t.Rank), t.From, t.To)
	}
}

// packEnding leaves the column empty of a job whose attempt nobody ends.
func packEnding(e job.Ending) string {
	if !e.Is() {
		return ""
	}
	return packValue(e)
}

func unpackEnding(text string) (job.Ending, error) {
	if text == "" {
		return job.Ending{}, nil
	}
	return unpackValue[job.Ending]("ending", text)
}

// dropInput deletes what jobs read as their standard input, which may have secrets.
func dropInput(s changeWriter, jobs []string) {
	for _, id := range jobs {
		s.execStatement("deleting the input of job "+id, "UPDATE jobs SET input = substr(input, 1, 0) WHERE id = ?", nil, id)
	}
}

// packValue returns a value as JSON, which it has no part that lacks.
func packValue(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func unpackValue[T any](column, text string) (v T, err error) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return v, fmt.Errorf("column %s: %w", column, err)
	}
	return v, nil
}

// jobReader reads jobs and what is known of their attempts.
type jobReader struct{ *connection }

func (r jobReader) Job(s ledger.Scope, id string) (job.Job, error) {
	return readOwnRow[jobRow](r.connection, s, "job", id)
}

func (r jobReader) Jobs(s ledger.Scope, f ledger.JobFilter, p ledger.Page) ([]job.Job, error) {
	return listRows[jobRow](withoutInput(onPage(r.chosen(s, f), p)), "listing jobs")
}

func (r jobReader) CountJobs(s ledger.Scope, f ledger.JobFilter) (map[job.State]int, error) {
	var counts []struct {
		State string
		N     int
	}
	err := r.chosen(s, f).Table("jobs").Select("state, COUNT(*) AS n").Group("state").Scan(&counts).Error
	byState := make(map[job.State]int, len(counts))
	for _, c := range counts {
		byState[job.State(c.State)] = c.N
	}
	return byState, wrapError("counting jobs", err)
}

// chosen are the jobs of a filter.
func (r jobReader) chosen(s ledger.Scope, f ledger.JobFilter) *gorm.DB {
	db := r.ownRows(s)
	for column, value := range map[string]string{"pool_id": f.PoolID, "name": f.Name, "submitted_by": f.SubmittedBy,
		"user_id": f.UserID} {
		if value != "" {
			db = db.Where(column+" = ?", value)
		}
	}
	if f.ArrayID != "" {
		db = db.Where("array_id = ?", f.ArrayID).Where("array_id <> ''") // the condition of the index
	}
	if f.ArrayIndex != nil {
		db = db.Where("array_index = ?", *f.ArrayIndex).Where("array_id <> ''")
	}
	if len(f.State) > 0 {
		db = db.Where("state IN ?", f.State)
	}
	if f.Live {
		db = db.Where(liveJob)
	}
	return submittedWithin(db, f)
}

func (r jobReader) JobsByID(wanted []string) (map[string]job.Job, error) {
	return r.jobsOf(wanted, withoutInput)
}

func (r jobReader) WholeJobs(wanted []string) (map[string]job.Job, error) {
	return r.jobsOf(wanted, func(db *gorm.DB) *gorm.DB { return db })
}

// jobsOf returns those of some jobs that there are, with the columns that are chosen.
func (r jobReader) jobsOf(wanted []string, choose func(db *gorm.DB) *gorm.DB) (map[string]job.Job, error) {
	byID := make(map[string]job.Job, len(wanted))
	for part := range slices.Chunk(wanted, atOnce) {
		all, err := listRows[jobRow](choose(r.newQuery().Where("id IN ?", part)), "reading jobs")
		if err != nil {
			return nil, err
		}
		for _, j := range all {
			byID[j.ID] = j
		}
	}
	return byID, nil
}

// progressRow counts the jobs of an array.
type progressRow struct {
	ArrayID                                              string
	Jobs, Started, Unstarted, Finished, Completed, Going int
}

// hasStarted is job.ProgressOf's rule. What an attempt that ran left behind is in its end, as packValue writes it.
const hasStarted = `(started_at <> 0 OR state = 'completed' OR attempt_end LIKE '%"Ran":true%')`

var countProgress = "array_id, COUNT(*) AS jobs, SUM(CASE WHEN " + hasStarted + " THEN 1 ELSE 0 END) AS started, " +
	"SUM(CASE WHEN " + liveJob + " OR " + hasStarted + " THEN 0 ELSE 1 END) AS unstarted, " +
	"SUM(CASE WHEN " + liveJob + " THEN 0 ELSE 1 END) AS finished, " +
	"SUM(CASE WHEN state = 'completed' THEN 1 ELSE 0 END) AS completed, " +
	"SUM(CASE WHEN " + jobWithGPUs + " THEN 1 ELSE 0 END) AS going"

func (r jobReader) ArrayProgress(wanted []string) (map[string]job.Progress, error) {
	all := make(map[string]job.Progress, len(wanted))
	for part := range slices.Chunk(wanted, atOnce) {
		var rows []progressRow
		err := r.newQuery().Table("jobs").Select(countProgress).Where("array_id IN ?", part).Where("array_id <> ''").
			Group("array_id").Scan(&rows).Error
		if err != nil {
			return nil, wrapError("counting the jobs of arrays", err)
		}
		for _, row := range rows {
			all[row.ArrayID] = job.Progress{Jobs: row.Jobs, Started: row.Started, Unstarted: row.Unstarted,
				Over: row.Finished, Completed: row.Completed, WithGPUs: row.Going}
		}
	}
	return all, nil
}

func (r jobReader) ArrayAttempts(wanted []string) (map[string]int, error) {
	all := make(map[string]int, len(wanted))
	for part := range slices.Chunk(wanted, atOnce) {
		var counts []struct {
			ArrayID string
			N       int
		}
		err := r.newQuery().Table("jobs").Select("array_id, COUNT(*) AS n").Where("array_id IN ?", part).
			Where("array_id <> ''").Where(jobWithGPUs).Group("array_id").Scan(&counts).Error
		if err != nil {
			return nil, wrapError("counting the jobs of arrays that have GPUs", err)
		}
		for _, c := range counts {
			all[c.ArrayID] = c.N
		}
	}
	return all, nil
}

func (r jobReader) LiveJobs(poolID string) ([]job.Job, error) {
	return listRows[jobRow](withoutInput(r.newQuery().Where("pool_id = ?", poolID).Where(liveJob).Order("id")),
		"listing live jobs")
}

func (r jobReader) LiveJobVersions(poolID string) (all []ledger.JobVersion, err error) {
	rows, err := r.newQuery().Table("jobs").Select("id", "version").Where("pool_id = ?", poolID).Where(liveJob).
		Order("id").Rows()
	if err != nil {
		return nil, wrapError("listing live jobs", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v ledger.JobVersion
		if err := rows.Scan(&v.ID, &v.Version); err != nil {
			return nil, wrapError("listing live jobs", err)
		}
		all = append(all, v)
	}
	return all, wrapError("listing live jobs", rows.Err())
}

func (r jobReader) CountLiveJobs(poolID string) (map[string]int, error) {
	var counts []struct {
		OrganizationID string
		N              int
	}
	err := r.newQuery().Table("jobs").Select("organization_id, COUNT(*) AS n").Where("pool_id = ?", poolID).
		Where(liveJob).Group("organization_id").Scan(&counts).Error
	byOrganization := make(map[string]int, len(counts))
	for _, c := range counts {
		byOrganization[c.OrganizationID] = c.N
	}
	return byOrganization, wrapError("counting live jobs", err)
}

func withoutInput(db *gorm.DB) *gorm.DB { return db.Omit("input") }

func (r jobReader) JobOutput(jobID string, attempt, rank int, after int64, limit int) ([]ledger.JobOutput, error) {
	return listRows[outputRow](r.newQuery().Where("job_id = ? AND attempt = ? AND rank = ? AND ends_at > ?", jobID,
		attempt, rank, after).Order("starts_at").Limit(limit), "reading the output of job "+jobID)
}

func (r jobReader) JobOutputEnd(jobID string, attempt, rank int) (int64, error) {
	last, _, err := findRow[outputRow](r.newQuery().Where("job_id = ? AND attempt = ? AND rank = ?", jobID, attempt,
		rank).Order("starts_at DESC"), "reading the end of the output of job "+jobID)
	return last.End, err
}
