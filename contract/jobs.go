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
	UserID            string            `json:"user_id,omitempty" doc:"Whose key that is; left out: nobody's."`
	UserEmail         string            `json:"user_email,omitempty"`
	State             string            `json:"state"`
	Reason            string            `json:"reason,omitempty"`
	Detail            string            `json:"detail,omitempty" doc:"The reason, for people."`
	Priority          string            `json:"priority" doc:"Its class: GET /v1/priorities."`
	Workload          string            `json:"workload" enum:"online,batch"`
	Command           []string          `json:"command" nullable:"false"`
	CommandCut        bool              `json:"command_cut,omitempty" doc:"Lists have the beginning of a long command."`
	Directory         string            `json:"directory,omitempty"`
	Environment       map[string]string `json:"environment,omitempty" doc:"Left out of lists."`
	Slurm             bool              `json:"slurm,omitempty" doc:"It gets the variables of Slurm, too."`
	Image             string            `json:"image,omitempty" doc:"Of its container; left out: it runs in none."`
	Mounts            []JobMount        `json:"mounts,omitempty"`
	GPUs              int               `json:"gpus"`
	Nodes             int               `json:"nodes"`
	GPUsPerNode       int               `json:"gpus_per_node" doc:"The last node has the rest of gpus."`
	MaxRuntimeSeconds int64             `json:"max_runtime_seconds"`
	GraceSeconds      int64             `json:"grace_seconds"`
	Checkpoint        *JobCheckpoint    `json:"checkpoint,omitempty"`
	Retries           JobRetries        `json:"retries"`
	Dependencies      []JobDependency   `json:"dependencies,omitempty"`
	ReservationID     string            `json:"reservation_id,omitempty" doc:"That its first attempt claims."`
	ArrayID           string            `json:"array_id,omitempty" doc:"What all jobs of its array share."`
	ArrayIndex        *int              `json:"array_index,omitempty"`
	ArrayLimit        int               `json:"array_limit,omitempty" doc:"So many of its array have GPUs at once."`
	NotBefore         time.Time         `json:"not_before,omitzero"`
	Attempt           int               `json:"attempt" doc:"How often it was given GPUs."`
	AllocationID      string            `json:"allocation_id,omitempty" doc:"Of its last attempt."`
	SubmittedAt       time.Time         `json:"submitted_at"`
	EligibleAt        time.Time         `json:"eligible_at,omitzero"`
	ScheduledAt       time.Time         `json:"scheduled_at,omitzero"`
	StartedAt         time.Time         `json:"started_at,omitzero" doc:"When the last attempt ran on all of its nodes."`
	EndedAt           time.Time         `json:"ended_at,omitzero"`
	ExitCode          *int              `json:"exit_code,omitempty"`
	Signal            string            `json:"signal,omitempty" doc:"That ended it, such as KILL."`
	PeakMemoryBytes   int64             `json:"peak_memory_bytes,omitempty"`
	GPUSeconds        int64             `json:"gpu_seconds" doc:"For which its attempts held GPUs."`
	Cost              Money             `json:"cost" doc:"Of those."`
	Position          int               `json:"position,omitempty"`
	Preemptible       bool              `json:"preemptible"`
	Preemptions       int               `json:"preemptions" doc:"How often it has left for other jobs."`
	Constraints       []string          `json:"constraints,omitempty" doc:"Labels that each of its nodes has."`
	Prefers           []string          `json:"prefers,omitempty"`
	Tolerations       []string          `json:"tolerations,omitempty" doc:"Taints that do not keep it away."`
	ExcludedNodes     []string          `json:"excluded_nodes,omitempty" doc:"Ids of nodes on which it does not run."`
	AvoidedNodes      []string          `json:"avoided_nodes,omitempty"`
	Near              []string          `json:"near,omitempty" doc:"Jobs and arrays: nodes at or near theirs come first."`
	ApartFrom         []string          `json:"apart_from,omitempty"`
	Ending            *JobEnding        `json:"ending,omitempty"`
	PredictedStart    *JobForecast      `json:"predicted_start,omitempty"`
	PredictedEnd      *JobForecast      `json:"predicted_end,omitempty"`
	Unpredicted       string            `json:"unpredicted,omitempty"`
	Version           int               `json:"version"`
}

// JobForecast is when something of a job is predicted to happen.
type JobForecast struct {
	Earliest time.Time `json:"earliest" doc:"It is earlier with a chance of about a tenth."`
	Likely   time.Time `json:"likely"`
	Latest   time.Time `json:"latest" doc:"It is later with a chance of about a tenth."`
	Basis    string    `json:"basis" doc:"What the prediction rests on, for people."`
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

// JobEnding is how the attempt that a job has is being ended.
type JobEnding struct {
	Then    string    `json:"then" enum:"cancelled,requeued,preempted" doc:"What becomes of the job once it has ended."`
	AskedAt time.Time `json:"asked_at"`
	KillAt  time.Time `json:"kill_at" doc:"What has not ended then gets KILL, where its nodes heard of it at once."`
	By      time.Time `json:"by" doc:"Then its GPUs are taken, whatever its nodes say."`
	For     string    `json:"for,omitempty"`
	Hold    bool      `json:"hold,omitempty" doc:"It is held then, instead of waiting again."`
	// UnheardBy are told of one job alone.
	UnheardBy []string `json:"unheard_by,omitempty"`
}

// JobCheckpoint has a job told by a signal that its end is near.
type JobCheckpoint struct {
	Signal        string `json:"signal" enum:"USR1,USR2,INT,HUP,TERM"`
	BeforeSeconds int64  `json:"before_seconds,omitempty" minimum:"1" maximum:"86400" default:"60"`
	LeaderOnly    bool   `json:"leader_only,omitempty"`
}

// JobRetries is how often a job is tried again, by why it ended.
type JobRetries struct {
	Failed int `json:"failed" minimum:"0" maximum:"100"`
	Lost   int `json:"lost" minimum:"0" maximum:"100"`
}

// JobMount is a folder of the node that a job has in its container.
type JobMount struct {
	Source   string `json:"source" minLength:"2" maxLength:"512" pattern:"^/[^:,]*$"`
	Target   string `json:"target,omitempty" maxLength:"512" pattern:"^/[^:,]*$" doc:"Left out: the same as source."`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// JobDependency lets a job start only once another one has come far enough.
type JobDependency struct {
	JobID     string `json:"job_id" minLength:"1" maxLength:"64"`
	Condition string `json:"condition,omitempty" enum:"after,afterok,afternotok,afterany,aftercorr" default:"afterok"`
}

// JobArray makes many jobs of one request.
type JobArray struct {
	First   int   `json:"first" required:"false" minimum:"0" maximum:"1000000"`
	Last    int   `json:"last" required:"false" minimum:"0" maximum:"1000000"`
	Step    int   `json:"step,omitempty" minimum:"1" maximum:"1000000" default:"1"`
	Indices []int `json:"indices,omitempty" maxItems:"10000" doc:"In place of the others, in any order."`
	Limit   int   `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
}

// JobCreate submits a job. Name a pool, or a model or needs: then it goes to the pool that has them
// where it can start first. Where there is one pool alone nothing need be named.
type JobCreate struct {
	Pool  string `json:"pool,omitempty" maxLength:"63"`
	Model string `json:"model,omitempty" maxLength:"63"`
	Needs
	GPUs int `json:"gpus,omitempty" minimum:"1" maximum:"100000" doc:"Left out: 1, or one on each of the nodes."`
	Layout
	Name              string            `json:"name,omitempty" maxLength:"63"`
	Command           []string          `json:"command" minItems:"1" maxItems:"4096" nullable:"false"`
	Directory         string            `json:"directory,omitempty" maxLength:"4096"`
	Environment       map[string]string `json:"environment,omitempty" maxProperties:"256"`
	Input             []byte            `json:"input,omitempty" maxLength:"262144"`
	Slurm             bool              `json:"slurm,omitempty"`
	Image             string            `json:"image,omitempty" maxLength:"512"`
	Mounts            []JobMount        `json:"mounts,omitempty" maxItems:"16"`
	Priority          string            `json:"priority,omitempty" maxLength:"32"`
	Workload          string            `json:"workload,omitempty" enum:"online,batch" default:"batch"`
	MaxRuntimeSeconds int64             `json:"max_runtime_seconds,omitempty" minimum:"1" maximum:"2592000"`
	GraceSeconds      int64             `json:"grace_seconds,omitempty" minimum:"1" maximum:"3600" default:"30"`
	Checkpoint        *JobCheckpoint    `json:"checkpoint,omitempty"`
	Retries           *JobRetries       `json:"retries,omitempty"`
	Preemptible       *bool             `json:"preemptible,omitempty"`
	Dependencies      []JobDependency   `json:"dependencies,omitempty" maxItems:"100"`
	ReservationID     string            `json:"reservation_id,omitempty" maxLength:"64" doc:"It runs in this."`
	Array             *JobArray         `json:"array,omitempty"`
	NotBefore         time.Time         `json:"not_before,omitzero" doc:"It starts no earlier."`
	Hold              bool              `json:"hold,omitempty" doc:"It waits until it is released."`
	Constraints       []string          `json:"constraints,omitempty" maxItems:"16"`
	Prefers           []string          `json:"prefers,omitempty" maxItems:"16"`
	Tolerations       []string          `json:"tolerations,omitempty" maxItems:"16"`
	ExcludedNodes     []string          `json:"excluded_nodes,omitempty" maxItems:"64"`
	Near              []string          `json:"near,omitempty" maxItems:"16"`
	ApartFrom         []string          `json:"apart_from,omitempty" maxItems:"16"`
}

// JobsSubmitted answers a submission.
type JobsSubmitted struct {
	Jobs    []Job  `json:"jobs" nullable:"false" doc:"One, or those of the array in the order of their indices."`
	ArrayID string `json:"array_id,omitempty"`
}

// JobCounts is how many jobs there are, by their state.
type JobCounts struct {
	Pending   int `json:"pending"`
	Held      int `json:"held"`
	Scheduled int `json:"scheduled"`
	Running   int `json:"running"`
	Preempted int `json:"preempted"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

// JobSet says which jobs a request changes: either all of an array, or all that its sender submitted.
type JobSet struct {
	ArrayID string   `json:"array_id,omitempty" maxLength:"64"`
	Mine    bool     `json:"mine,omitempty" doc:"Those that were submitted with this key, or by its person."`
	Pool    string   `json:"pool,omitempty" maxLength:"63" doc:"Only those in this pool, by its id or name."`
	States  []string `json:"states,omitempty" enum:"pending,held,scheduled,running,preempted" maxItems:"5"`
	Cursor  string   `json:"cursor,omitempty" maxLength:"200" doc:"next_cursor of the answer before."`
}

// JobPatch changes what a job asks for. What is left out stays.
type JobPatch struct {
	Pool              *string    `json:"pool,omitempty" nullable:"false" minLength:"1" maxLength:"64"`
	Name              *string    `json:"name,omitempty" nullable:"false" maxLength:"63"`
	Priority          *string    `json:"priority,omitempty" nullable:"false" minLength:"1" maxLength:"32"`
	MaxRuntimeSeconds *int64     `json:"max_runtime_seconds,omitempty" nullable:"false" minimum:"1" maximum:"2592000"`
	NotBefore         *time.Time `json:"not_before,omitempty" nullable:"false" doc:"What is past means at once."`
	Preemptible       *bool      `json:"preemptible,omitempty" nullable:"false"`
}

// JobSetPatch changes what the jobs of a set ask for, as far as their states let it.
type JobSetPatch struct {
	JobSet
	Patch JobPatch `json:"patch"`
}

// JobsChanged answers a change of a set of jobs.
type JobsChanged struct {
	Changed    int          `json:"changed"`
	Unchanged  int          `json:"unchanged"`
	Refused    int          `json:"refused"`
	Refusals   []JobRefusal `json:"refusals" nullable:"false" doc:"The first 20."`
	NextCursor string       `json:"next_cursor,omitempty"`
}

// JobRefusal is a job of a set that was not changed, and why.
type JobRefusal struct {
	ID      string `json:"id"`
	Status  int    `json:"status" doc:"What a request for this job alone would have been answered with."`
	Code    string `json:"code" doc:"The problem's code."`
	Message string `json:"message"`
}

// JobOutput is a piece of what a job wrote.
type JobOutput struct {
	Attempt int       `json:"attempt"`
	Rank    int       `json:"rank" doc:"Of the node on which it was written."`
	Offset  int64     `json:"offset" doc:"Of its first byte in all that this attempt wrote on this node."`
	Stream  string    `json:"stream" enum:"stdout,stderr"`
	At      time.Time `json:"at" doc:"By the node's clock."`
	Data    []byte    `json:"data"`
	LeftOut int64     `json:"left_out,omitempty" doc:"So many bytes that were asked for and end at offset are not kept."`
}

const peakMemoryTag = `doc:"The most memory that the last attempt had at once on a node, as its cgroup counts ` +
	`it; where that is not bounded, the most of one of its processes. Left out: it is not known."`

// jobTags are the rests of tags that are too long for their lines.
var jobTags = tags{
	"Job.EligibleAt": `doc:"Since when its wait counts, or will: since it could run. Left out of one that is held, or ` +
		`that waits for other jobs."`,
	"Job.State": `enum:"pending,held,scheduled,running,preempted,completed,failed,cancelled"`,
	"Job.Reason": `doc:"A code: why it waits: gpus, dependency, not_before, array_limit, nodes, ` +
		`silent_daemon, quota; or how it ended: exit, signal, ` +
		`time_limit, oom, not_started, not_served, node_lost, lease_over, dependency, asked."`,
	"Job.Ending": `doc:"The attempt was told to end: TERM, and KILL when its grace is over. Until it has, the job has ` +
		`its GPUs."`,
	"Job.PredictedStart": `doc:"Of a job that waits, in the queue, where position is asked for, and in a dry run: no ` +
		`promise; who comes and goes before it makes it later."`,
	"Job.PredictedEnd": `doc:"Of a job that runs, where position is asked for, from how long others like it ran. Its ` +
		`limit stays max_runtime_seconds."`,
	"Job.Unpredicted": `doc:"Why there is no predicted_start or predicted_end, where one was asked for."`,
	"JobEnding.For":   `doc:"The job for which it leaves; left out where that is another organization's."`,
	"JobEnding.UnheardBy": `doc:"Nodes on which it runs whose daemons have been silent for two minutes, and have not ` +
		`heard that it is to end; where one job is read."`,
	"Job.Directory": `doc:"Where it begins; left out: the folder of its allocation on the node."`,
	"Job.ExitCode": `doc:"Of the last attempt: the first that was not 0, by rank; 128 and the number of the signal that ` +
		`ended it."`,
	"Job.PeakMemoryBytes": peakMemoryTag,
	"Job.Position": `doc:"Among the jobs that wait in its pool, from 1, as they would start now; left out: it does not ` +
		`wait for GPUs, or nobody asked."`,
	"JobSet.ArrayID": `doc:"The array_id of its jobs. Exactly one of this and mine must be given."`,
	"JobSet.States":  `doc:"Only those in any of these states; left out: in any that is not over."`,
	"JobsChanged.Unchanged": `doc:"They are as was asked, or nothing can be done to jobs in their state. Most of them ` +
		`are counted by the first request, which has no cursor."`,
	"JobsChanged.NextCursor": `doc:"Send the same request with this as its cursor to go on; left out: all are done. A ` +
		`request works for some seconds at most."`,
	"JobRetries.Failed": `doc:"After its own failure; never when its memory (oom) or its time (time_limit) was ` +
		`over: it would be again."`,
	"JobRetries.Lost": `doc:"After the loss of its node or GPUs, or where no daemon started it."`,
	"JobPatch.Pool":   `doc:"Id or name of that in which it is to wait."`,
	"JobCreate.Priority": `doc:"Name of a priority class: low, normal or high, unless the installation names others. ` +
		`Left out: its default."`,
	"JobPatch.Priority": `doc:"Name of a priority class. Of a job that runs it decides for whom the job may be told to ` +
		`leave."`,
	"JobPatch.MaxRuntimeSeconds": `doc:"Of a job that waits: the nodes of one that has begun end it by the limit with ` +
		`which it began."`,
	"Job.Preemptible": `doc:"Where the pool has preemption, it may be told to leave for jobs that go before it: it gets ` +
		`its checkpoint's signal, TERM and its grace, and waits again with its place in the queue."`,
	"JobCreate.Workload": `doc:"What it is for: pools may keep a share for each."`,
	"Job.Prefers":        `doc:"Labels: nodes with more of them come first."`,
	"Job.AvoidedNodes":   `doc:"Ids of nodes whose failure ended an attempt: it is tried again elsewhere."`,
	"Job.ApartFrom": `doc:"Jobs by id or name, and arrays by id: it shares no node with any of them, and they with ` +
		`it."`,
	"JobCreate.Near": `doc:"Ids of jobs and arrays: of the nodes that it may have, those come first where one of them ` +
		`runs, and then those near such a node."`,
	"JobCreate.ApartFrom": `doc:"Ids or names of jobs of the organization, or ids of arrays: it runs on no node with ` +
		`one of them, nor they with it. Its own name keeps jobs of that name apart that say so."`,
	"JobCreate.Constraints": `doc:"What the labels of each of its nodes have to be: key=value, key, !key, key!=value, ` +
		`key in (a,b) or key notin (a,b)."`,
	"JobCreate.Prefers": `doc:"The same of labels: of the nodes that it may have, those with more of them come ` +
		`first."`,
	"JobCreate.Tolerations":   `doc:"Taints of nodes that do not keep it away."`,
	"JobCreate.ExcludedNodes": `doc:"Ids of nodes on which it does not run."`,
	"JobCreate.Preemptible":   `doc:"As Job.preemptible; left out: what the pool says."`,
	"JobCreate.Input":         `doc:"What it reads from its standard input, in base64; left out: nothing."`,
	"JobMount.Source":         `doc:"One that the node's operator allows."`,
	"JobCreate.Image": `doc:"Has the command run in a container of this image, with the GPUs and the folder of its ` +
		`allocation: a name of a registry or, for apptainer, also a file of the nodes."`,
	"JobCreate.Mounts":    `doc:"Folders of the nodes for the container."`,
	"JobArray.Limit":      `doc:"So many of its jobs have GPUs at once; left out: as many as there is room for."`,
	"JobDependency.JobID": `doc:"Of a job, or the array_id of an array: then of all its jobs."`,
	"JobCreate.Slurm": `doc:"It gets variables of Slurm, too, such as SLURM_JOB_ID, SLURM_ARRAY_TASK_ID and ` +
		`SLURM_NODEID."`,
	"JobCreate.Array": `doc:"Makes a job of each index; it finds its own in FOREWARM_ARRAY_INDEX."`,
	"JobCreate.Environment": `doc:"Its variables, beside those that name its GPUs, its rank and the other nodes. ` +
		`Anybody who may see the job sees them."`,
	"JobCreate.MaxRuntimeSeconds": `doc:"How long an attempt may run; left out: a day, or what leases of the pool ` +
		`allow. Then it gets TERM, and KILL when its grace is over. What is short starts earlier, in gaps before ` +
		`others' reservations."`,
	"JobCreate.GraceSeconds": `doc:"Between TERM and KILL."`,
	"JobCreate.Command":      `doc:"The program and its arguments; no shell reads them."`,
	"JobCreate.Retries":      `doc:"Left out: none after a failure, and 3 after a loss."`,
	"JobCheckpoint.LeaderOnly": `doc:"Its first process gets the signal, such as the shell of a script; left out: its ` +
		`whole process group does. A daemon that is older than this signals all."`,
	"JobCheckpoint.BeforeSeconds": `doc:"How long before max_runtime_seconds is over."`,
	"JobDependency.Condition": `doc:"after: it has started; afterok: it has completed; afternotok: it has failed or ` +
		`was cancelled; afterany: it is over; aftercorr: between two arrays, the job of the same index has completed. A ` +
		`job whose condition can never come true fails."`,
}
