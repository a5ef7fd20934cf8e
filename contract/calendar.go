package contract

import "time"

// Shape is GPUs on some nodes.
type Shape struct {
	GPUs        int `json:"gpus"`
	Nodes       int `json:"nodes"`
	GPUsPerNode int `json:"gpus_per_node" doc:"The last node has the rest of gpus."`
}

// CalendarStep is what is free during all of [start, end).
type CalendarStep struct {
	Start     time.Time       `json:"start"`
	End       time.Time       `json:"end"`
	FreeGPUs  int             `json:"free_gpus"`
	FreeNodes int             `json:"free_nodes" doc:"Wholly free."`
	Largest   Shape           `json:"largest" doc:"The most GPUs that one request can have; zero: none."`
	Workloads []WorkloadLevel `json:"workloads,omitempty" doc:"Of a pool that is split."`
}

// WorkloadLevel is what one workload may still have of a split pool.
type WorkloadLevel struct {
	Workload string `json:"workload" enum:"online,batch"`
	Share    int    `json:"share" doc:"GPUs that are kept for it."`
	Used     int    `json:"used" doc:"The most that it holds at any one instant of the step."`
	Free     int    `json:"free" doc:"GPUs that it may still have, borrowed ones included."`
}

// Calendar is when a pool has room. It says nothing of whose the rest is.
type Calendar struct {
	PoolID      string         `json:"pool_id"`
	PoolName    string         `json:"pool_name,omitempty"`
	From        time.Time      `json:"from"`
	To          time.Time      `json:"to"`
	StepSeconds int64          `json:"step_seconds" doc:"0: a step at each change."`
	Steps       []CalendarStep `json:"steps" nullable:"false"`
}

// TimeRange is a window that may move: any start and end within the bounds, and
// any length between the durations. What is left out does not bind. The names
// are those of Google's Calendar Advisory.
type TimeRange struct {
	StartTimeNotEarlierThan time.Time `json:"start_time_not_earlier_than,omitzero"`
	StartTimeNotLaterThan   time.Time `json:"start_time_not_later_than,omitzero"`
	EndTimeNotEarlierThan   time.Time `json:"end_time_not_earlier_than,omitzero"`
	EndTimeNotLaterThan     time.Time `json:"end_time_not_later_than,omitzero"`
	MinDurationSeconds      int64     `json:"min_duration_seconds,omitempty" minimum:"1" maximum:"31536000"`
	MaxDurationSeconds      int64     `json:"max_duration_seconds,omitempty" minimum:"1" maximum:"31536000"`
}

// CalendarAdviceRequest asks when something has a place. Name a pool, or a model
// or needs.
type CalendarAdviceRequest struct {
	Pool  string `json:"pool,omitempty" maxLength:"63" doc:"Id or name."`
	Model string `json:"model,omitempty" maxLength:"63"`
	Needs
	GPUs int `json:"gpus,omitempty" minimum:"1" maximum:"100000" doc:"May be left out with nodes and gpus_per_node."`
	Layout
	StartTimeNotEarlierThan time.Time `json:"start_time_not_earlier_than,omitzero" doc:"Now, when left out."`
	StartTimeNotLaterThan   time.Time `json:"start_time_not_later_than,omitzero"`
	EndTimeNotEarlierThan   time.Time `json:"end_time_not_earlier_than,omitzero"`
	EndTimeNotLaterThan     time.Time `json:"end_time_not_later_than,omitzero"`
	MinDurationSeconds      int64     `json:"min_duration_seconds" minimum:"1" maximum:"31536000"`
	MaxDurationSeconds      int64     `json:"max_duration_seconds,omitempty" minimum:"1" maximum:"31536000"`
	Class                   string    `json:"class,omitempty" enum:"guaranteed,speculative" default:"guaranteed"`
	Workload                string    `json:"workload,omitempty" enum:"online,batch" default:"online"`
	Limit                   int       `json:"limit,omitempty" minimum:"1" maximum:"20" default:"3"`
}

// Recommendation is a reservation that succeeds when asked for at once.
type Recommendation struct {
	PoolID      string    `json:"pool_id"`
	PoolName    string    `json:"pool_name,omitempty"`
	GPUs        int       `json:"gpus"`
	Nodes       int       `json:"nodes"`
	GPUsPerNode int       `json:"gpus_per_node" doc:"The last node has the rest of gpus."`
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`
	Cost        Money     `json:"cost"`
}

// CalendarAdvice answers with the earliest recommendations first. Without any,
// blockers say what is in the way.
type CalendarAdvice struct {
	Recommendations []Recommendation `json:"recommendations" nullable:"false"`
	Blockers        []Blocker        `json:"blockers,omitempty"`
}

// calendarTags are the rests of tags that are too long for their lines.
var calendarTags = tags{
	"CalendarAdviceRequest.MaxDurationSeconds": `doc:"min_duration_seconds, when left out."`,
	"CalendarAdviceRequest.Limit":              `doc:"How many recommendations at most."`,
}
