// Package history holds what the agent knows about past GPU jobs: one
// normalised Record per job, readers for the files it comes from (CSV, JSONL,
// the text of Slurm's sacct and the JSON of kubectl), and the resume positions of
// those files.
//
// The files are written by others and are not trusted. A row that breaks a rule
// is counted and reported by line number, field and rule, never by value, and
// the rest of the file is still read. Memory is bounded by one line of at most
// MaxLine bytes, whatever the file holds; kubectl's lists also cost a record per
// object.
//
// Nothing in this package leaves the customer's machine.
package history

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of a plausible record. Outside them a row is broken.
const (
	// MaxGPUs is the most GPUs that one job may hold.
	MaxGPUs = 100_000
	// MaxDuration is the longest run time of one job.
	MaxDuration = 10 * 365 * 24 * time.Hour
	// MaxName is the longest job id or tenant name, in bytes.
	MaxName = 256
)

// earliest and latest bound every point in time of a record.
var (
	earliest = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// State is how a job stands or ended.
type State string

// The states of a job. Unknown also stands for words we have no state for.
const (
	Unknown   State = "unknown"
	Pending   State = "pending"
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"
	TimedOut  State = "timed_out"
	Preempted State = "preempted"
)

// stateWords maps the first word of a status, in lower case, to a State. The
// words are those of Slurm, Kubernetes and the published traces.
var stateWords = map[string]State{
	"pending": Pending, "pd": Pending, "queued": Pending, "requeued": Pending, "configuring": Pending,
	"running": Running, "r": Running, "suspended": Running, "completing": Running,
	"completed": Completed, "succeeded": Completed, "pass": Completed, "terminated": Completed,
	"failed": Failed, "node_fail": Failed, "boot_fail": Failed, "out_of_memory": Failed,
	"cancelled": Cancelled, "canceled": Cancelled, "killed": Cancelled, "revoked": Cancelled,
	"timeout": TimedOut, "deadline": TimedOut, "preempted": Preempted,
}

// ParseState returns the state that a status word of another system means. Only
// the first word counts ("CANCELLED by 1000"); an unknown word is Unknown.
func ParseState(status string) State {
	word, _, _ := strings.Cut(strings.TrimSpace(status), " ")
	if s, ok := stateWords[strings.ToLower(strings.TrimRight(word, "+"))]; ok {
		return s
	}
	return Unknown
}

// Record is one past or present job, in the same form whatever it came from.
// Times are UTC. The same job may be read more than once, with the same ID: the
// later record replaces the earlier one.
type Record struct {
	// ID is a pseudonym of the job: the same job has the same ID inside one
	// history, and the name it had in its file cannot be read from it.
	ID string
	// Tenant is the group or account the job ran for; empty when not known.
	Tenant string
	// Submitted is always known. Started and Ended are zero when unknown.
	Submitted, Started, Ended time.Time
	// Duration is the run time; 0 when unknown or under a second.
	Duration time.Duration
	// GPUs is the number held for the whole run, at least 1.
	GPUs int
	// State is how the job stands or ended.
	State State
	// Class is a keyed hash of who runs it and what it is called, the same for all jobs of which both are; 0 when
	// neither is known.
	Class uint32
	// Array is a keyed hash of what was submitted as one, such as an array of jobs or the pods of a Job; 0 when it is
	// no part of such.
	Array uint32
	// Nameless says that its history has neither names nor comments nor labels: if
	// the job is a placeholder of Forewarm, nobody can tell.
	Nameless bool
	// ResemblesOwn says that it is called like a placeholder of Forewarm, and is another user's.
	ResemblesOwn bool
}

// Validate returns a *RowError, without a line, for the first rule that the
// record breaks, or nil.
func (r Record) Validate() error {
	for _, rule := range r.validationRules() {
		if !rule.holds {
			return &RowError{Field: rule.field, Rule: rule.text}
		}
	}
	return nil
}

// rule is one check of a record and what to say when it does not hold.
type rule struct {
	field string
	holds bool
	text  string
}

func (r Record) validationRules() []rule {
	return []rule{
		{"id", r.ID != "" && plainName(r.ID), "must be 1 to 256 bytes of text without control characters"},
		{"tenant", plainName(r.Tenant), "must be at most 256 bytes of text without control characters"},
		{"submitted", isPlausible(r.Submitted), "must be a time between 1990 and 2200"},
		{"started", r.Started.IsZero() || isPlausible(r.Started), "must be a time between 1990 and 2200"},
		{"ended", r.Ended.IsZero() || isPlausible(r.Ended), "must be a time between 1990 and 2200"},
		{"ended", r.Ended.IsZero() || r.Started.IsZero() || !r.Ended.Before(r.Started), "must not be before the start"},
		{"duration", r.Duration >= 0 && r.Duration <= MaxDuration, "must be between 0 and 10 years"},
		{"gpus", r.GPUs >= 1 && r.GPUs <= MaxGPUs, "must be a whole number from 1 to 100000"},
	}
}

func isPlausible(t time.Time) bool { return !t.Before(earliest) && t.Before(latest) }

func plainName(s string) bool {
	return len(s) <= MaxName && utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

// Failed reports whether the job ended otherwise than it should, so that it may well be tried again.
func (r Record) Failed() bool {
	return r.State == Failed || r.State == TimedOut || r.State == Preempted
}

// hashOf is a short pseudonym of texts, or 0 if all are empty.
func (o Options) hashOf(texts ...string) uint32 {
	all := strings.Join(texts, "\x00")
	if len(all) < len(texts) {
		return 0
	}
	mac := hmac.New(sha256.New, o.Salt)
	mac.Write([]byte(all))
	return max(1, binary.BigEndian.Uint32(mac.Sum(nil)))
}

// Pseudonym returns the ID of a job: the first 96 bits of HMAC-SHA-256 over the
// name it has in its own system. Without a salt it only hides the name from a
// reader; with a secret salt it cannot be found by trying out names.
func Pseudonym(salt []byte, name string) string {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte(name))
	return hex.EncodeToString(mac.Sum(nil)[:12])
}
