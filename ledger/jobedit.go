package ledger

import (
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
)

// JobEdit changes what a job asks for. What is nil stays.
type JobEdit struct {
	Pool        *string // in which it waits: its id or name
	Name        *string
	Priority    *job.Priority
	MaxRuntime  *time.Duration
	NotBefore   *time.Time
	Preemptible *bool
}

// Check returns *InvalidError for an edit that changes nothing, or that no job could have.
func (e JobEdit) Check() error {
	switch {
	case e == JobEdit{}:
		return &InvalidError{Field: "name", Rule: "must be given, or another field that is to change"}
	case e.MaxRuntime != nil && *e.MaxRuntime < time.Second:
		return &InvalidError{Field: "max_runtime_seconds", Rule: "must be at least 1 s"}
	case e.Name != nil:
		return checkJobName(*e.Name)
	}
	return nil
}

// SuitsRunning reports whether it changes nothing that a job which has begun cannot change any more: its nodes end it
// by the limit with which it began, and it is where it is.
func (e JobEdit) SuitsRunning() bool {
	return e.MaxRuntime == nil && e.NotBefore == nil && e.Pool == nil
}

// Of is the job as it is edited, but for its pool.
func (e JobEdit) Of(j job.Job) job.Job {
	if e.Name != nil {
		j.Name = *e.Name
	}
	if e.Priority != nil {
		j.Priority = *e.Priority
	}
	if e.MaxRuntime != nil {
		j.MaxRuntime = *e.MaxRuntime
	}
	if e.NotBefore != nil {
		j.NotBefore = *e.NotBefore
	}
	if e.Preemptible != nil {
		j.Preemptible = *e.Preemptible
	}
	return j
}

// Describe says for people how now differs from what the job was.
func (e JobEdit) Describe(was, now job.Job, at time.Time) string {
	var parts []string
	say := func(differs bool, what, value string) {
		if differs {
			parts = append(parts, what+" "+value)
		}
	}
	if was.PoolID != now.PoolID && e.Pool != nil {
		parts = append(parts, "pool "+ClipText(*e.Pool, 64))
	}
	say(was.Name != now.Name, "name", ClipText(now.Name, 63))
	say(was.Priority != now.Priority, "priority", string(now.Priority))
	say(was.MaxRuntime != now.MaxRuntime, "max runtime", phrase.Length(now.MaxRuntime))
	say(!was.NotBefore.Equal(now.NotBefore), "not before", FormatTimeSeen(now.NotBefore, at))
	say(was.Preemptible != now.Preemptible, "preemptible", map[bool]string{true: "yes", false: "no"}[now.Preemptible])
	return strings.Join(parts, ", ")
}

// CheckNotBefore returns *InvalidError for a time that no answer could name: years have four digits.
func CheckNotBefore(at time.Time) error {
	if year := at.UTC().Year(); !at.IsZero() && (year < 1970 || year > 9999) {
		return &InvalidError{Field: "not_before", Rule: "must be in the years 1970 to 9999, in UTC"}
	}
	return nil
}
