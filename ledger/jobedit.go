package ledger

import (
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
)

// JobEdit changes what a job that waits asks for. What is nil stays.
type JobEdit struct {
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
	}
	return nil
}

// Of is the job as it is edited.
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
	say(was.Name != now.Name, "name", ClipText(now.Name, 63))
	say(was.Priority != now.Priority, "priority", string(now.Priority))
	say(was.MaxRuntime != now.MaxRuntime, "max runtime", phrase.Length(now.MaxRuntime))
	say(!was.NotBefore.Equal(now.NotBefore), "not before", FormatTimeSeen(now.NotBefore, at))
	say(was.Preemptible != now.Preemptible, "preemptible", map[bool]string{true: "yes", false: "no"}[now.Preemptible])
	return strings.Join(parts, ", ")
}

// mostAhead is how far ahead of now a job may be told to start.
const mostAhead = 366 * 24 * time.Hour

// CheckNotBefore returns *InvalidError for a time at which no job is told to start: one that is too far ahead, or that
// no calendar writes with four digits of a year.
func CheckNotBefore(at, now time.Time) error {
	switch {
	case at.IsZero():
		return nil
	case at.After(now.Add(mostAhead)):
		return &InvalidError{Field: "not_before", Rule: "must be at most 366 days ahead"}
	case at.UTC().Year() < 1970:
		return &InvalidError{Field: "not_before", Rule: "must be in 1970 or later"}
	}
	return nil
}
