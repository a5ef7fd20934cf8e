package contract

import "time"

// JoinTokenCreate asks for a token with which the daemon of a node joins.
type JoinTokenCreate struct {
	ExpiresInSeconds int64 `json:"expires_in_seconds,omitempty" minimum:"1" maximum:"900" default:"900"`
}

// JoinToken lets the daemon of one node join, once.
type JoinToken struct {
	NodeID    string    `json:"node_id"`
	Token     string    `json:"token" doc:"Shown once."`
	ExpiresAt time.Time `json:"expires_at"`
	URL       string    `json:"url,omitempty" doc:"Where to reach the control plane, if it is configured."`
}

// NodeJoin is what a daemon says of itself when it joins, with a join token as its key, or
// renews its key.
type NodeJoin struct {
	BootID string `json:"boot_id" minLength:"1" maxLength:"64" doc:"Of the machine, as its kernel names this boot."`
}

// NodeJoined answers a join and a renewal.
type NodeJoined struct {
	NodeID           string `json:"node_id"`
	Key              string `json:"key" doc:"For heartbeats and renewals of this node alone. Shown once."`
	ExpiresInSeconds int64  `json:"expires_in_seconds" doc:"Renew it when half of it is over."`
	HeartbeatSeconds int64  `json:"heartbeat_seconds" doc:"How often to send a heartbeat."`
}

// Heartbeat is one report of a daemon.
type Heartbeat struct {
	Version string      `json:"version" maxLength:"64" doc:"Of the daemon."`
	BootID  string      `json:"boot_id" minLength:"1" maxLength:"64"`
	Epoch   int64       `json:"epoch" minimum:"0"`
	Seq     int64       `json:"seq" minimum:"0" doc:"Grows; a report that comes after a later one is dropped."`
	SentAt  time.Time   `json:"sent_at,omitzero" doc:"For people. The server's own clock counts."`
	Clears  int         `json:"clears" minimum:"0"`
	Look    NodeLook    `json:"look"`
	Holds   []string    `json:"holds,omitempty" maxItems:"256" doc:"The allocations that have a place on the node."`
	Cleaned []Cleaned   `json:"cleaned,omitempty" maxItems:"256"`
	Jobs    []JobReport `json:"jobs,omitempty" maxItems:"256"`
	Asked   bool        `json:"asked,omitempty"`
	// OverHolds and GoneJobs answer the questions of the last HeartbeatAnswer.
	OverHolds []string `json:"over_holds,omitempty" maxItems:"256"`
	GoneJobs  []JobKey `json:"gone_jobs,omitempty" maxItems:"256"`
}

// ErrorSuperseded is the code of a FieldError of daemon-refused: a later daemon of the same machine is there, and goes
// on with what runs.
const ErrorSuperseded = "superseded"

// HeartbeatAnswer says what the daemon needs to know.
type HeartbeatAnswer struct {
	Clears           int        `json:"clears"`
	HeartbeatSeconds int64      `json:"heartbeat_seconds" doc:"How often to send a heartbeat."`
	Ended            []string   `json:"ended,omitempty"`
	Jobs             []JobOrder `json:"jobs,omitempty"`
	StopJobs         []JobStop  `json:"stop_jobs,omitempty"`
	ForgetJobs       []JobKey   `json:"forget_jobs,omitempty"`
	Leases           []Lease    `json:"leases,omitempty"`
	// UnlistedHolds and UnlistedJobs are questions to the daemon.
	UnlistedHolds []string `json:"unlisted_holds,omitempty"`
	UnlistedJobs  []JobKey `json:"unlisted_jobs,omitempty"`
}

// Lease is for how long an allocation's work may still be on a node.
type Lease struct {
	AllocationID string `json:"allocation_id"`
	LeftSeconds  int64  `json:"left_seconds" doc:"Until its end by the control plane's clock, rounded up."`
}

// Cleaned is what a daemon found where the work of an allocation's holder ran.
type Cleaned struct {
	AllocationID string `json:"allocation_id" minLength:"1" maxLength:"64"`
	Problem      string `json:"problem,omitempty" maxLength:"300" doc:"Why it is not clean; left out: nothing is left."`
	Proof        string `json:"proof,omitempty" maxLength:"300" doc:"What was ended, removed and read back, for people."`
}

// NodeLook is what was seen of a node's GPUs at one moment.
type NodeLook struct {
	Source  string `json:"source" enum:"nvml,nvidia-smi,simulated,none"`
	Driver  string `json:"driver,omitempty" maxLength:"64"`
	Problem string `json:"problem,omitempty" maxLength:"300" doc:"Why the look failed, or is not whole."`
	// ExporterProblem says why the DCGM exporter there cannot be read.
	ExporterProblem string `json:"exporter_problem,omitempty" maxLength:"300"`
	// Isolation says how well the node keeps a holder from others' work.
	Isolation string `json:"isolation,omitempty" enum:"devices,user,environment"`
	// Unbounded says why the memory and the processors of a holder's work are not bounded.
	Unbounded string `json:"unbounded,omitempty" maxLength:"300"`
	// Containers is the program that runs jobs with an image there.
	Containers string    `json:"containers,omitempty" enum:"apptainer,podman,docker"`
	GPUs       []LookGPU `json:"gpus" maxItems:"64" nullable:"false"`
}

// LookGPU is one GPU in a look. What could not be read is left out.
type LookGPU struct {
	UUID         string `json:"uuid" minLength:"1" maxLength:"96"`
	Parent       string `json:"parent,omitempty" maxLength:"96" doc:"Of a MIG device: the UUID of its GPU."`
	PCI          string `json:"pci,omitempty" maxLength:"32"`
	Index        int    `json:"index" minimum:"0" maximum:"4095"`
	Minor        *int   `json:"minor,omitempty" minimum:"0" maximum:"4095" doc:"N of /dev/nvidiaN."`
	Capabilities []int  `json:"capabilities,omitempty" maxItems:"8" doc:"N of the /dev/nvidia-caps/nvidia-capN."`
	Model        string `json:"model" maxLength:"128"`
	Lost         bool   `json:"lost,omitempty" doc:"It was there, and the driver does not find it any more."`
	GPUTelemetry
	Health   string           `json:"health" enum:"healthy,degraded,unhealthy,unknown"`
	Evidence []HealthEvidence `json:"evidence,omitempty" maxItems:"8"`
	BurnIn   *BurnIn          `json:"burn_in,omitempty"`
}

// BurnIn is what came of the test of a GPU's memory before it was used, in this boot of its machine.
type BurnIn struct {
	State  string `json:"state" enum:"passed,failed,skipped"`
	Detail string `json:"detail" maxLength:"300" doc:"How much was tested, what was wrong, or why nothing was tested."`
}

// GPUTelemetry is what a GPU's counters say. What could not be read is left out.
type GPUTelemetry struct {
	Utilization *int `json:"utilization_percent,omitempty" minimum:"0" maximum:"100"`
	MemoryBusy  *int `json:"memory_busy_percent,omitempty" minimum:"0" maximum:"100"`
	// SMActivity is the share of its multiprocessors that worked.
	SMActivity    *float64 `json:"sm_activity_percent,omitempty" minimum:"0" maximum:"100"`
	MemoryUsedMiB *int     `json:"memory_used_mib,omitempty" minimum:"0" maximum:"16777216"`
	MemoryMiB     *int     `json:"memory_total_mib,omitempty" minimum:"0" maximum:"16777216"`
	Temperature   *int     `json:"temperature_celsius,omitempty" minimum:"-100" maximum:"1000"`
	Power         *float64 `json:"power_watts,omitempty" minimum:"0" maximum:"100000"`
	PowerLimit    *float64 `json:"power_limit_watts,omitempty" minimum:"0" maximum:"100000"`
	SMClock       *int     `json:"sm_clock_mhz,omitempty" minimum:"0" maximum:"100000"`
	MemoryClock   *int     `json:"memory_clock_mhz,omitempty" minimum:"0" maximum:"100000"`
	Throttle      []string `json:"throttle,omitempty" maxItems:"16" doc:"Why its clocks are lower than they could be."`
	ECCVolatile   *int64   `json:"ecc_uncorrected_volatile,omitempty" minimum:"0"`
	ECCAggregate  *int64   `json:"ecc_uncorrected_aggregate,omitempty" minimum:"0"`
	// ECCCorrectedVolatile and ECCCorrectedAggregate are errors of its memory that did no harm.
	ECCCorrectedVolatile  *int64 `json:"ecc_corrected_volatile,omitempty" minimum:"0"`
	ECCCorrectedAggregate *int64 `json:"ecc_corrected_aggregate,omitempty" minimum:"0"`
	Remapped              *int   `json:"remapped_rows,omitempty" minimum:"0" doc:"Of its memory, after errors."`
	RemapPending          *bool  `json:"remap_pending,omitempty"`
	RemapFailed           *bool  `json:"remap_failed,omitempty"`
	Recovery              string `json:"recovery_action,omitempty" maxLength:"32" doc:"What the driver asks for."`
	NVLinkErrors          *int64 `json:"nvlink_errors,omitempty" minimum:"0"`
	NVLinks               *int   `json:"nvlinks,omitempty" minimum:"0" maximum:"64" doc:"That it has."`
	NVLinksUp             *int   `json:"nvlinks_up,omitempty" minimum:"0" maximum:"64"`
	// NVLinkSent and NVLinkReceived are of all its links.
	NVLinkSent     *int64 `json:"nvlink_sent_bytes_per_second,omitempty" minimum:"0"`
	NVLinkReceived *int64 `json:"nvlink_received_bytes_per_second,omitempty" minimum:"0"`
	// PCIeGeneration and PCIeWidth are those at which its link works now: lower while it idles.
	PCIeGeneration    *int   `json:"pcie_generation,omitempty" minimum:"0" maximum:"64"`
	PCIeGenerationMax *int   `json:"pcie_generation_max,omitempty" minimum:"0" maximum:"64"`
	PCIeWidth         *int   `json:"pcie_width,omitempty" minimum:"0" maximum:"64" doc:"Lanes that it uses now."`
	PCIeWidthMax      *int   `json:"pcie_width_max,omitempty" minimum:"0" maximum:"64"`
	PCIeSent          *int64 `json:"pcie_sent_bytes_per_second,omitempty" minimum:"0"`
	PCIeReceived      *int64 `json:"pcie_received_bytes_per_second,omitempty" minimum:"0"`
	Processes         *int   `json:"processes,omitempty" minimum:"0" doc:"That compute on it."`
	MIG               *bool  `json:"mig,omitempty" doc:"It is divided."`
	XIDs              []XID  `json:"xids,omitempty" maxItems:"32"`
	XIDCount          *int64 `json:"xid_count,omitempty" minimum:"0" doc:"XIDs since its machine booted."`
	LastXID           *int   `json:"last_xid,omitempty" minimum:"0" maximum:"65535"`
	// FromDCGM names the fields that a DCGM exporter told, as they are called here.
	FromDCGM []string `json:"from_dcgm,omitempty" maxItems:"32"`
}

// XID is an error event of the driver, of which so many came since the last look.
type XID struct {
	Code  int `json:"code" minimum:"0" maximum:"65535"`
	Count int `json:"count" minimum:"1"`
}

// HealthEvidence is one thing that speaks against a GPU.
type HealthEvidence struct {
	Rule   string    `json:"rule" maxLength:"64"`
	Detail string    `json:"detail" maxLength:"300"`
	Since  time.Time `json:"since" doc:"By the node's clock."`
}

// The states of a daemon that joined.
const (
	DaemonOnline = "online" // it reports
	DaemonSilent = "silent" // it did
)

// NodeDaemon is what is known of the daemon on a node.
type NodeDaemon struct {
	State   string    `json:"state" enum:"none,online,silent" doc:"none: it never called home."`
	SeenAt  time.Time `json:"seen_at,omitzero"`
	Version string    `json:"version,omitempty"`
	Source  string    `json:"source,omitempty" doc:"Where its figures come from; simulated: none is real."`
	Problem string    `json:"problem,omitempty" doc:"Why it cannot tell, or not all."`
	// ExporterProblem says why the DCGM exporter there cannot be read.
	ExporterProblem string `json:"exporter_problem,omitempty" maxLength:"300"`
	// Isolation says how well the node keeps a holder from others' work.
	Isolation string `json:"isolation,omitempty" enum:"devices,user,environment"`
	// Unbounded says why the memory and the processors of a holder's work are not bounded.
	Unbounded string `json:"unbounded,omitempty"`
	// Containers is the program that runs jobs with an image there.
	Containers string `json:"containers,omitempty" enum:"apptainer,podman,docker"`
}

// GPUSeen is what the daemon of a node said of a GPU last.
type GPUSeen struct {
	SeenAt    time.Time `json:"seen_at" doc:"Where another server was told, up to 30 s before it was told last."`
	Simulated bool      `json:"simulated" doc:"No figure is real."`
	GPUTelemetry
	Evidence []HealthEvidence `json:"evidence,omitempty" doc:"What speaks against it."`
	BurnIn   *BurnIn          `json:"burn_in,omitempty"`
}

// GPUHistory is what a GPU did in the last day at most, as its node's daemon told one server. The day of a share
// is that of its GPU.
type GPUHistory struct {
	UUID        string           `json:"uuid"`
	Simulated   bool             `json:"simulated" doc:"No figure is real."`
	Since       time.Time        `json:"since" doc:"What is told begins here: as asked, a day ago, or with the hold."`
	StepSeconds int64            `json:"step_seconds"`
	Complete    bool             `json:"complete"`
	Elsewhere   bool             `json:"elsewhere"`
	Items       []GPUHistoryStep `json:"items" nullable:"false"`
}

// GPUHistoryStep is what a GPU did in one step. A figure that did not come in it is left out.
type GPUHistoryStep struct {
	Start             time.Time `json:"start"`
	UtilizationMean   *int      `json:"utilization_percent_mean,omitempty" minimum:"0" maximum:"100"`
	UtilizationMax    *int      `json:"utilization_percent_max,omitempty" minimum:"0" maximum:"100"`
	MemoryUsedMiBMean *int      `json:"memory_used_mib_mean,omitempty" minimum:"0"`
	TemperatureMax    *int      `json:"temperature_celsius_max,omitempty"`
	PowerMean         *float64  `json:"power_watts_mean,omitempty" minimum:"0"`
}

const isolationTag = `doc:"How well the node keeps a holder from others' work. devices: each holder's has a user of ` +
	`its own, and can open no GPU but its own; user: it has a user of its own; environment: all have the daemon's, and ` +
	`are told their GPUs; left out: it takes no sessions."`

const unboundedTag = `doc:"Why the memory and the processors of a holder's work are not bounded there; left out: ` +
	`they are, or it takes no sessions."`

const exporterTag = `doc:"Why the DCGM exporter on the node cannot be read, so that its figures are missing; left ` +
	`out: it can, or none is read."`

const containersTag = `doc:"The program that runs jobs with an image there; left out: none does."`

const burnInTag = `doc:"The test of its memory before it was used; left out: there was none."`

// nodeDaemonTags are the rests of tags that are too long for their lines.
var nodeDaemonTags = tags{
	"NodeLook.Isolation":         isolationTag,
	"NodeDaemon.Isolation":       isolationTag,
	"NodeLook.ExporterProblem":   exporterTag,
	"NodeDaemon.ExporterProblem": exporterTag,
	"NodeLook.Unbounded":         unboundedTag,
	"NodeDaemon.Unbounded":       unboundedTag,
	"NodeLook.Containers":        containersTag,
	"NodeDaemon.Containers":      containersTag,
	"LookGPU.BurnIn":             burnInTag,
	"GPUSeen.BurnIn":             burnInTag,
	"GPUTelemetry.SMActivity": `doc:"The mean share of its multiprocessors that worked since the look before; left out ` +
		`where the GPU does not count that."`,
	"GPUTelemetry.ECCCorrectedVolatile":  `doc:"Since the driver was loaded; they did no harm."`,
	"GPUTelemetry.ECCCorrectedAggregate": `doc:"Since the GPU was made; they did no harm."`,
	"GPUTelemetry.NVLinkSent":            `doc:"By all its links, on average since the look before."`,
	"GPUTelemetry.NVLinkReceived":        `doc:"By all its links, on average since the look before."`,
	"GPUTelemetry.PCIeGeneration":        `doc:"At which its link works now: lower while it idles."`,
	"GPUTelemetry.FromDCGM": `doc:"The fields of these that a DCGM exporter on the node told; the others are of the ` +
		`look's source."`,
	"NodeLook.Source": `doc:"simulated: no figure is real; none: the look failed."`,
	"GPUHistory.Complete": `doc:"The server that answers was told something in each five minutes since. Each server ` +
		`keeps in memory what it was told itself, until it ends."`,
	"GPUHistory.Elsewhere": `doc:"The node's daemon has reported to another server since it did to this one, which ` +
		`has what is missing here."`,
	"GPUHistory.Items": `doc:"In order, one for each step from the first on of which the server was told. One in which ` +
		`nothing came has no figures."`,
	"Heartbeat.Epoch": `doc:"When the daemon began, in milliseconds since its machine booted: of two daemons with one ` +
		`identity the later one is believed."`,
	"Heartbeat.Clears": `doc:"The clears that the daemon was last told, and has followed."`,
	"Heartbeat.Cleaned": `doc:"Of allocations that have ended, as the last answer named them, what is left of their ` +
		`holders' work. It is repeated until an answer names them no more."`,
	"HeartbeatAnswer.Ended": `doc:"Allocations that have ended: the daemon ends their work here, and proves that ` +
		`nothing of it is left. They are named until it has."`,
	"HeartbeatAnswer.Leases": `doc:"Of the holds that the heartbeat lists and that go on. A daemon that hears nothing ` +
		`for a minute after one ends their work by itself; of those that are left out it does not."`,
	"Heartbeat.OverHolds": `doc:"Of unlisted_holds of the last answer, those that had a place on the node and were ` +
		`ended there: the daemon does not let them in again, and the control plane ends their allocations."`,
	"HeartbeatAnswer.UnlistedHolds": `doc:"Allocations that have GPUs of the node, and that the heartbeat does not list ` +
		`although they may have a place there. The next heartbeat says which of them are over."`,
	"HeartbeatAnswer.Clears": `doc:"How often an operator took the node back into use. When it grows, the daemon ` +
		`forgets what spoke against its GPUs, and looks anew."`,
}
