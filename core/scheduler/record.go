package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// RecordVersion is the version of the rules and of the form of new records. Whatever has the same state give another
// decision, or renames what is in a record, raises it.
const RecordVersion = 1

// Record is one look at a queue: the state, all that was decided on it, and what became of that. It is enough to
// decide again.
type Record struct {
	Version int
	Pool    string // its name
	Now     time.Time
	Policy  Policy
	State   Snapshot
	Rounds  []Round
	// Ends is what was expected to end first, and Next whose turn was next then.
	Ends []string
	Next []string
	// Jobs are the jobs that run, by the ids under which they do where these are others.
	Jobs map[string]string
	// NotMade are the jobs for which nobody was told to leave in the end, although that was planned.
	NotMade []string
	// Failed is why the look ended early; then not all of the last round may have been carried out. Empty: it did not.
	Failed string
	// DryRun says that nothing of it was carried out, because somebody only asked.
	DryRun bool
}

// Round is a cycle, with what was put back after it because that could not be carried out.
type Round struct {
	Decision
	PutBack PutBack
}

// PutBack is what cannot be carried out of a decision.
type PutBack struct {
	Unclaimed []string // they wait as before, and claim that reservation no more
	Refused   []string // they wait, but for nothing that this look could give them
	LeftOut   []string // they would be refused as others were
}

// IsEmpty reports whether everything could be carried out.
func (b PutBack) IsEmpty() bool { return len(b.Unclaimed)+len(b.Refused)+len(b.LeftOut) == 0 }

// refusedFor is for how long jobs that were refused stay out of a queue: longer than any look takes.
const refusedFor = time.Hour

// Refuse has a job wait again that was to start and may not. One that was to claim something waits for its turn, the
// others for none within this look. The job is noted in b.
func Refuse(s *Scheduler, b *PutBack, job string, now time.Time) (isClaim bool) {
	if s.Unclaim(job, now) {
		b.Unclaimed = append(b.Unclaimed, job)
		return true
	}
	s.Requeue(job, now, now.Add(refusedFor))
	b.Refused = append(b.Refused, job)
	return false
}

// LeaveOut takes a job out of the queue that would be refused as another one was, and notes it in b.
func LeaveOut(s *Scheduler, b *PutBack, job string) {
	if s.Cancel(job) {
		b.LeftOut = append(b.LeftOut, job)
	}
}

// putBack does to a scheduler what was done to the one that was recorded.
func putBack(s *Scheduler, b PutBack, now time.Time) {
	for _, id := range b.Unclaimed {
		s.Unclaim(id, now)
	}
	for _, id := range b.Refused {
		s.Requeue(id, now, now.Add(refusedFor))
	}
	for _, id := range b.LeftOut {
		s.Cancel(id)
	}
}

// Decides reports whether the record has more than that everybody waits as before: starts, refusals, promises, who
// leaves or is waited for, or whose turn is next.
func (r Record) Decides() bool {
	decides := func(d Round) bool {
		return len(d.Starts)+len(d.Promised)+len(d.Broken)+len(d.Plans)+len(d.Awaited) > 0
	}
	return r.Failed != "" || len(r.Next) > 0 || slices.ContainsFunc(r.Rounds, decides)
}

// Starts reports whether the record starts anybody, or tries to.
func (r Record) Starts() bool {
	return slices.ContainsFunc(r.Rounds, func(d Round) bool { return len(d.Starts) > 0 })
}

// Outcome is what was decided, as bytes: two looks that started nobody and have the same outcome tell the same.
func (r Record) Outcome() ([]byte, error) {
	of := Record{Pool: r.Pool, Next: r.Next, NotMade: r.NotMade, Failed: r.Failed}
	for _, round := range r.Rounds {
		d := Decision{Starts: round.Starts, Plans: round.Plans, Awaited: round.Awaited, Broken: round.Broken}
		for _, p := range round.Promised { // when it is moves with every look, where the work before it has no end
			d.Promised = append(d.Promised, Promise{Preempting: p.Preempting})
			d.Promised[len(d.Promised)-1].ID = p.ID
		}
		for _, b := range round.Blocked {
			d.Blocked = append(d.Blocked, Blocked{Job: b.Job, Blocker: b.Blocker})
		}
		of.Rounds = append(of.Rounds, Round{Decision: d, PutBack: round.PutBack})
	}
	return json.Marshal(of)
}

// Encode returns the record as one line of JSON.
func (r Record) Encode() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a record of pool %q: %w", r.Pool, err)
	}
	return text, nil
}

// VersionError says that a record is of another version than this program can read.
type VersionError struct{ Has int }

// Error names both versions.
func (e *VersionError) Error() string {
	than := "a newer"
	if e.Has < RecordVersion {
		than = "another"
	}
	return fmt.Sprintf("the record is of version %d, and this program decides by version %d: replay it with %s one",
		e.Has, RecordVersion, than)
}

// DecodeRecord reads what Encode wrote, or fails with a *VersionError. A field that this version does not know is an
// error: it would be left out of the replay.
func DecodeRecord(text []byte) (Record, error) {
	var is struct{ Version *int }
	if err := json.Unmarshal(text, &is); err != nil {
		return Record{}, fmt.Errorf("decoding a record: %w", err)
	}
	switch {
	case is.Version == nil:
		return Record{}, fmt.Errorf("decoding a record: %w", errNoVersion)
	case *is.Version != RecordVersion:
		return Record{}, &VersionError{Has: *is.Version}
	}
	var r Record
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("decoding a record: %w", err)
	}
	return r, nil
}

var errNoVersion = errors.New("it names no version, so that it is no record of a scheduler")
