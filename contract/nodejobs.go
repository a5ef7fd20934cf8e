package contract

import "time"

// JobOrder has the daemon of a node start an attempt of a job there: once, however often it is
// told.
type JobOrder struct {
	JobKey
	Rank            int               `json:"rank" doc:"Of this node among those of the job."`
	AllocationID    string            `json:"allocation_id"`
	GPUUUIDs        []string          `json:"gpu_uuids" nullable:"false"`
	GPUIndices      []int             `json:"gpu_indices" nullable:"false" doc:"In the order of the UUIDs."`
	Shares          *GPUShares        `json:"shares,omitempty" doc:"Left out: it has its GPUs alone."`
	HoldEnvironment map[string]string `json:"hold_environment,omitempty"`
	EndsHold        bool              `json:"ends_hold,omitempty" doc:"The hold ends with it."`
	Hosts           []string          `json:"hosts,omitempty" doc:"Of its nodes, by rank; left out: not all are known."`
	LeaseSeconds    int64             `json:"lease_seconds,omitempty" doc:"Of the hold: until its lease is over."`

	Command           []string          `json:"command" nullable:"false"`
	Directory         string            `json:"directory,omitempty" doc:"Left out: the folder of the allocation."`
	Environment       map[string]string `json:"environment,omitempty"`
	Input             []byte            `json:"input,omitempty"`
	Slurm             bool              `json:"slurm,omitempty" doc:"It gets the variables of Slurm, too."`
	Image             string            `json:"image,omitempty" doc:"Of its container; left out: it runs in none."`
	Mounts            []JobMount        `json:"mounts,omitempty"`
	MaxRuntimeSeconds int64             `json:"max_runtime_seconds"`
	GraceSeconds      int64             `json:"grace_seconds" doc:"Between TERM and KILL."`
	Checkpoint        *JobCheckpoint    `json:"checkpoint,omitempty"`
}

// JobStop has a daemon end an attempt: with the signal of its checkpoint, if it has one and time for it,
// then TERM, and KILL. An attempt that has ended, or was told before, is left alone.
type JobStop struct {
	JobKey
	Signal       string `json:"signal,omitempty" doc:"Comes first; left out: there is none."`
	LeaderOnly   bool   `json:"leader_only,omitempty" doc:"The job's first process gets that signal, and no other."`
	LeadSeconds  int64  `json:"lead_seconds,omitempty" doc:"Between that signal and TERM."`
	GraceSeconds int64  `json:"grace_seconds" doc:"Between TERM and KILL."`
}

// JobKey names an attempt of a job.
type JobKey struct {
	JobID   string `json:"job_id" minLength:"1" maxLength:"64"`
	Attempt int    `json:"attempt" minimum:"1" maximum:"1000000"`
}

// The states of an attempt on a node.
const (
	JobRankRunning = "running"
	JobRankEnded   = "ended"
)

// Why an attempt ended on a node without, or before, an exit code of its own.
const (
	JobTimeLimit  = "time_limit"  // it was ended when its time was over; the exit code is what it left
	JobNotStarted = "not_started" // nothing ran
	JobStopped    = "stopped"     // it was told to end, as JobStop says; the exit code is what it left
	JobLost       = "lost"        // how it ended is not known: its machine, or what watched it, ended first
	// JobOutOfMemory says that the kernel ended it when its allocation's memory on the node, or the node's, was full.
	JobOutOfMemory = "oom"
)

// JobReport is what a daemon knows of an attempt of a job on its node. It is repeated in each
// heartbeat until an answer says that it may be forgotten.
type JobReport struct {
	JobKey
	Rank       int     `json:"rank" minimum:"0" maximum:"100000"`
	State      string  `json:"state" enum:"running,ended"`
	RanSeconds float64 `json:"ran_seconds" minimum:"0" maximum:"1e9" doc:"For how long it has run, or ran."`
	ExitCode   int     `json:"exit_code" minimum:"0" maximum:"255"`
	Signal     string  `json:"signal,omitempty" maxLength:"16" doc:"That ended it, such as KILL."`
	Code       string  `json:"code,omitempty" enum:"time_limit,not_started,stopped,lost,oom"`
	Reason     string  `json:"reason,omitempty" maxLength:"300" doc:"For people."`
	// PeakMemoryBytes is the most memory that it had at once.
	PeakMemoryBytes int64 `json:"peak_memory_bytes,omitempty" minimum:"0"`
	// EndedSecondsAgo is how long before this report it ended, which an outage may delay.
	EndedSecondsAgo float64 `json:"ended_seconds_ago,omitempty" minimum:"0" maximum:"1e9"`
}

// JobOutputPart is what a job wrote on a node since an offset. A part that is there already changes nothing.
type JobOutputPart struct {
	Attempt int             `json:"attempt" minimum:"1" maximum:"1000000"`
	Rank    int             `json:"rank" minimum:"0" maximum:"100000"`
	Offset  int64           `json:"offset" minimum:"0" doc:"Of the first byte, as in JobOutput."`
	Pieces  []JobOutputData `json:"pieces" minItems:"1" maxItems:"256" nullable:"false"`
}

// JobOutputData is one piece of output.
type JobOutputData struct {
	Stream string    `json:"stream" enum:"stdout,stderr"`
	At     time.Time `json:"at"`
	Data   []byte    `json:"data" maxLength:"131072" doc:"In base64."`
}

// JobOutputStored answers a part: what is before the offset is kept, or was given up.
type JobOutputStored struct {
	NextOffset int64 `json:"next_offset"`
}

// nodeJobTags are the rests of tags that are too long for their lines.
var nodeJobTags = tags{
	"JobReport.PeakMemoryBytes": peakMemoryTag,
	"JobReport.EndedSecondsAgo": `doc:"How long before this report it ended; left out below a second."`,
	"JobOrder.HoldEnvironment":  `doc:"What the hold brings, as for a session: it goes before environment."`,
	"HeartbeatAnswer.Jobs": `doc:"Attempts of jobs to start. They are named until a heartbeat reports them: one that ` +
		`is known is not started again."`,
	"HeartbeatAnswer.StopJobs": `doc:"Attempts to end. They are named until a heartbeat reports that they have."`,
	"HeartbeatAnswer.ForgetJobs": `doc:"Attempts that have ended and of which all is known, or that nobody knows: the ` +
		`daemon forgets them."`,
	"Heartbeat.Jobs": `doc:"All attempts that the daemon knows. One that has ended is reported once its output was ` +
		`sent, as far as that can be."`,
	"Heartbeat.GoneJobs": `doc:"Of unlisted_jobs of the last answer, the attempts that the daemon does not have: the ` +
		`control plane takes them for lost or, if they were to end before they were heard to begin, for never begun."`,
	"HeartbeatAnswer.UnlistedJobs": `doc:"Attempts that may run there, as far as the control plane knows, and that the ` +
		`heartbeat does not list. The next heartbeat, which comes at once, says which of them it does not have."`,
	"Heartbeat.Asked": `doc:"The control plane asked for this report, as by AttachResponse.report."`,
}
