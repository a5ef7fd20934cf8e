package load

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Op is a kind of request.
type Op string

// The requests that people and agents send.
const (
	Reserve  Op = "reserve"
	Batch    Op = "batch" // one item of it
	Cancel   Op = "cancel"
	Allocate Op = "allocate"
	Claim    Op = "claim"
	Extend   Op = "extend"
	Release  Op = "release"
	Plan     Op = "plan" // one reservation that an agent was told of

	Submit     Op = "submit" // one job of it
	CancelJob  Op = "cancel-job"
	RequeueJob Op = "requeue-job"
)

// Entry is one effect that was acknowledged.
type Entry struct {
	At           time.Time `json:"at"`
	Op           Op        `json:"op"`
	Organization string    `json:"organization"`
	ID           string    `json:"id"`                    // of the reservation, the allocation, or the job
	Name         string    `json:"name,omitempty"`        // of what was made, which is its request's idempotency key
	Reservation  string    `json:"reservation,omitempty"` // that was claimed
	Devices      []string  `json:"devices,omitempty"`     // that were handed out with the answer, sorted
	Manner       string    `json:"manner,omitempty"`      // of a job
	After        string    `json:"after,omitempty"`       // the job that it waits for
}

// Journal is what was acknowledged, in a file and in memory. It is safe for
// concurrent use.
type Journal struct {
	mu       sync.Mutex
	out      io.Writer
	entries  []Entry
	counts   map[Op]int // requests that were answered, whatever the answer
	extended map[string]int
	doubled  []string
	odd      []string
	unsure   int
	visits   map[string]int // by how they ended
	failed   error
}

// NewJournal returns an empty one that writes each entry to out as a line.
func NewJournal(out io.Writer) *Journal {
	return &Journal{out: out, counts: map[Op]int{}, extended: map[string]int{}, visits: map[string]int{}}
}

// Entries returns what was acknowledged so far.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// Operations counts the requests that were answered.
func (j *Journal) Operations() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, count := range j.counts {
		n += count
	}
	return n
}

// Counts is Operations by kind.
func (j *Journal) Counts() map[Op]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.counts)
}

// Extensions is how many different extensions were asked of each allocation,
// answered or not.
func (j *Journal) Extensions() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.extended)
}

// Doubled are answers to one request that speak of two effects.
func (j *Journal) Doubled() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.doubled)
}

// Odd are answers that nothing explains.
func (j *Journal) Odd() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.odd)
}

// Unsure is how many requests were never answered.
func (j *Journal) Unsure() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unsure
}

// Visits counts the sessions that were asked for on nodes by how they ended.
func (j *Journal) Visits() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.visits)
}

// Err is the first failure to write the file.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// recordEffect writes down an effect.
func (j *Journal) recordEffect(e Entry) {
	e.At = time.Now().UTC()
	slices.Sort(e.Devices)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
	text, err := json.Marshal(e)
	if err == nil {
		_, err = j.out.Write(append(text, '\n'))
	}
	if err != nil && j.failed == nil {
		j.failed = fmt.Errorf("writing the journal: %w", err)
	}
}

func (j *Journal) countAnswer(op Op) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[op]++
}

func (j *Journal) countVisit(how string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.visits[how]++
}

func (j *Journal) countExtension(allocation string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.extended[allocation]++
}

func (j *Journal) recordDoubled(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.doubled = append(j.doubled, text)
}

// recordStrange keeps the first of each kind of answer that nothing explains, and
// counts no more than a screenful.
func (j *Journal) recordStrange(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.odd) < 40 && !slices.Contains(j.odd, text) {
		j.odd = append(j.odd, text)
	}
}

func (j *Journal) countUnanswered() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unsure++
}
