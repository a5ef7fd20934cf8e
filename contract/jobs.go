package contract

import "time"

// Job is a command that runs on GPUs of its own once it gets them.
type Job struct {
	ID                string            `json:"id"`
	OrganizationID    string            `json:"organization_id"`
	OrganizationName  string            `json:"organization_name,omitempty"`
	PoolID            string            `json:"pool_id"`
	PoolName          string            `json:"pool_name,omitempty"`
	Name              string            `json:"name,omitempty"`
	SubmittedBy       string            `json:"submitted_by" doc:"Id of the key that submitted it."`
	SubmittedByName   string            `json:"submitted_by_name,omitempty"`
	State             string            `json:"state"`
	Reason            string            `json:"reason,omitempty"`
	Detail            string            `json:"detail,omitempty" doc:"The reason, for people."`
	Priority          string            `json:"priority" enum:"low,normal,high"`
	Command           []string          `json:"command" nullable:"false"`
	Directory         string            `json:"directory,omitempty"`
	Environment       map[string]string `json:"environment,omitempty" doc:"Left out of lists."`
	GPUs              int               `json:"gpus"`
	Nodes             int               `json:"nodes"`
	GPUsPerNode       int               `json:"gpus_per_node" doc:"The last node has the rest of gpus."`
	MaxRuntimeSeconds int64             `json:"max_runtime_seconds"`
	GraceSeconds      int64             `json:"grace_seconds"`
	Checkpoint        *JobCheckpoint    `json:"checkpoint,omitempty"`
	Retries           JobRetries        `json:"retries"`
	Dependencies      []JobDependency   `json:"dependencies,omitempty"`
	ArrayID           string            `json:"array_id,omitempty" doc:"What all jobs of its array share."`
	ArrayIndex        *int              `json:"array_index,omitempty"`
	NotBefore         time.Time         `json:"not_before,omitzero"`
	Attempt           int               `json:"attempt" doc:"How often it was given GPUs."`
	AllocationID      string            `json:"allocation_id,omitempty" doc:"Of its last attempt."`
	SubmittedAt       time.Time         `json:"submitted_at"`
	ScheduledAt       time.Time         `json:"scheduled_at,omitzero"`
	StartedAt         time.Time         `json:"started_at,omitzero" doc:"When the last attempt ran on all of its nodes."`
	EndedAt           time.Time         `json:"ended_at,omitzero"`
	ExitCode          *int              `json:"exit_code,omitempty"`
	Signal            string            `json:"signal,omitempty" doc:"That ended it, such as KILL."`
	GPUSeconds        int64             `json:"gpu_seconds" doc:"For which its attempts held GPUs."`
	Cost              Money             `json:"cost" doc:"Of those."`
	Position          int               `json:"position,omitempty"`
	Version           int               `json:"version"`
}

// The states of a job.
const (
	JobPending   = "pending"
	JobHeld      = "held"
	JobScheduled = "scheduled"
	JobRunning   = "running"
	JobPreempted = "preempted"
	JobCompleted = "completed"
	JobFailed    = "failed"
	JobCancelled = "cancelled"
)

// JobCheckpoint has a job told by a signal that its end is near.
type JobCheckpoint struct {
	Signal        string `json:"signal" enum:"USR1,USR2,INT,HUP,TERM"`
	BeforeSeconds int64  `json:"before_seconds,omitempty" minimum:"1" maximum:"86400" default:"60"`
}

// JobRetries is how often a job is tried again, by why it ended.
type JobRetries struct {
	Failed int `json:"failed" minimum:"0" maximum:"100" doc:"After its own failure."`
	Lost   int `json:"lost" minimum:"0" maximum:"100"`
}

// JobDependency lets a job start only once another one has come far enough.
type JobDependency struct {
	JobID     string `json:"job_id" minLength:"1" maxLength:"64"`
	Condition string `json:"condition,omitempty" enum:"after,afterok,afternotok,afterany" default:"afterok"`
}

// JobArray makes many jobs of one request.
type JobArray struct {
	First int `json:"first" minimum:"0" maximum:"1000000"`
	Last  int `json:"last" minimum:"0" maximum:"1000000"`
	Step  int `json:"step,omitempty" minimum:"1" maximum:"1000000" default:"1"`
}

// JobCreate submits a job. Name a pool, or a model or needs: then it goes to the pool that has them
// where it can start first.
type JobCreate struct {
	Pool  string `json:"pool,omitempty" maxLength:"63"`
	Model string `json:"model,omitempty" maxLength:"63"`
	Needs
	GPUs int `json:"gpus,omitempty" minimum:"1" maximum:"100000" doc:"1 where neither this nor nodes is given."`
	Layout
	Name              string            `json:"name,omitempty" maxLength:"63"`
	Command           []string          `json:"command" minItems:"1" maxItems:"4096" nullable:"false"`
	Directory         string            `json:"directory,omitempty" maxLength:"4096"`
	Environment       map[string]string `json:"environment,omitempty" maxProperties:"256"`
	Input             []byte            `json:"input,omitempty" maxLength:"262144"`
	Priority          string            `json:"priority,omitempty" enum:"low,normal,high" default:"normal"`
	MaxRuntimeSeconds int64             `json:"max_runtime_seconds,omitempty" minimum:"1" maximum:"2592000"`
	GraceSeconds      int64             `json:"grace_seconds,omitempty" minimum:"1" maximum:"3600" default:"30"`
	Checkpoint        *JobCheckpoint    `json:"checkpoint,omitempty"`
	Retries           *JobRetries       `json:"retries,omitempty"`
	Dependencies      []JobDependency   `json:"dependencies,omitempty" maxItems:"100"`
	Array             *JobArray         `json:"array,omitempty"`
	NotBefore         time.Time         `json:"not_before,omitzero" doc:"It starts no earlier."`
	Hold              bool              `json:"hold,omitempty" doc:"It waits until it is released."`
}

// JobsSubmitted answers a submission.
type JobsSubmitted struct {
	Jobs    []Job  `json:"jobs" nullable:"false" doc:"One, or those of the array in the order of their indices."`
	ArrayID string `json:"array_id,omitempty"`
}

// JobOutput is a piece of what a job wrote.
type JobOutput struct {
	Attempt int       `json:"attempt"`
	Rank    int       `json:"rank" doc:"Of the node on which it was written."`
	Offset  int64     `json:"offset" doc:"Of its first byte in all that this attempt wrote on this node."`
	Stream  string    `json:"stream" enum:"stdout,stderr"`
	At      time.Time `json:"at" doc:"By the node's clock."`
	Data    []byte    `json:"data"`
}

// jobTags are the rests of tags that are too long for their lines.
var jobTags = tags{
	"Job.State": `enum:"pending,held,scheduled,running,preempted,completed,failed,cancelled"`,
	"Job.Reason": `doc:"A code: why it waits, or how it ended: exit, signal, time_limit, not_started, ` +
		`not_served, node_lost, lease_over, dependency, asked."`,
	"Job.Directory": `doc:"Where it begins; left out: the folder of its allocation on the node."`,
	"Job.ExitCode": `doc:"Of the last attempt: the first that was not 0, by rank; 128 and the number of the signal that ` +
		`ended it."`,
	"Job.Position": `doc:"Among the jobs that wait in its pool, from 1, as they would start now; left out: it does not ` +
		`wait for GPUs."`,
	"JobRetries.Lost": `doc:"After the loss of its node or GPUs, or where no daemon started it."`,
	"JobCreate.Input": `doc:"What it reads from its standard input, in base64; left out: nothing."`,
	"JobCreate.Array": `doc:"Makes a job of each index; it finds its own in FOREWARM_ARRAY_INDEX."`,
	"JobCreate.Environment": `doc:"Its variables, beside those that name its GPUs, its rank and the other nodes. ` +
		`Anybody who may see the job sees them."`,
	"JobCreate.MaxRuntimeSeconds": `doc:"How long an attempt may run; left out: a day, or what leases of the pool ` +
		`allow. Then it gets TERM, and KILL when its grace is over. What is short starts earlier, in gaps before ` +
		`others' reservations."`,
	"JobCreate.GraceSeconds":      `doc:"Between TERM and KILL."`,
	"JobCreate.Command":           `doc:"The program and its arguments; no shell reads them."`,
	"JobCreate.Retries":           `doc:"Left out: none after a failure, and 3 after a loss."`,
	"JobCheckpoint.BeforeSeconds": `doc:"How long before max_runtime_seconds is over."`,
	"JobDependency.Condition": `doc:"after: it has started; afterok: it has completed; afternotok: it has failed or ` +
		`was cancelled; afterany: it is over. A job whose condition can never come true fails."`,
}
