package txn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/ledger"
)

// How many refusals of one key are journaled each with its decision, in a minute
// and of one batch. The others are counted, and told of in one event: a journal
// that refusals could fill would be a way to fill the disk.
const (
	refusalsPerMinute = 100
	refusalsPerBatch  = 10
)

// refusals is what this process knows of the refusals of a minute. What is counted
// and not told yet is lost with the process.
type refusals struct {
	mu       sync.Mutex
	minute   time.Time
	journals map[string]int // by key: journaled with their decisions
	counted  refusalCounts  // of this minute
	untold   []ledger.Event // of minutes that are over
}

// refusalCounts are refusals that have no event of their own.
type refusalCounts map[refusedBy]int

// refusedBy is what refusals are counted by.
type refusedBy struct {
	organization, actor, via string
	reason                   admission.Code
}

// turnMinute begins the count of a new minute. The caller holds the mutex.
func (r *refusals) turnMinute(now time.Time) {
	if minute := now.Truncate(time.Minute); !minute.Equal(r.minute) {
		r.untold = append(r.untold, r.counted.refusalEvents(r.minute)...)
		r.minute, r.journals, r.counted = minute, map[string]int{}, refusalCounts{}
	}
}

// takeUntold returns the events that tell of the minutes that are over. Whoever
// takes them journals them or gives them back.
func (r *refusals) takeUntold(now time.Time) []ledger.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnMinute(now)
	untold := r.untold
	r.untold = nil
	return untold
}

// giveBack has somebody else journal what takeUntold returned.
func (r *refusals) giveBack(untold []ledger.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.untold = slices.Concat(untold, r.untold)
}

// countJournaled returns how many refusals of a key were journaled in the minute of now.
func (r *refusals) countJournaled(key string, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.minute.Equal(now.Truncate(time.Minute)) {
		return 0
	}
	return r.journals[key]
}

// addCounts adds up what others counted.
func (c refusalCounts) addCounts(o refusalCounts) {
	for by, n := range o {
		c[by] += n
	}
}

// refusalEvents tells of what was counted, an event for each key of an organization.
func (c refusalCounts) refusalEvents(since time.Time) []ledger.Event {
	reasons := map[refusedBy][]string{}
	for _, by := range c.sortedKeys() {
		who := by
		who.reason = ""
		reasons[who] = append(reasons[who], fmt.Sprintf("%d for %s", c[by], by.reason))
	}
	var events []ledger.Event
	for _, by := range refusalCountsOf(reasons).sortedKeys() {
		message := fmt.Sprintf("since %s beyond those that are listed: %s", since.UTC().Format(time.TimeOnly),
			strings.Join(reasons[by], ", "))
		events = append(events, ledger.Event{
			OrganizationID: by.organization, Type: "requests.refused", Subject: by.actor, Actor: by.actor, Via: by.via,
			Message: ledger.ClipText(message, 200),
		})
	}
	return events
}

func refusalCountsOf[V any](m map[refusedBy]V) refusalCounts {
	c := refusalCounts{}
	for by := range m {
		c[by] = 0
	}
	return c
}

func (c refusalCounts) sortedKeys() []refusedBy {
	var keys []refusedBy
	for by := range c {
		keys = append(keys, by)
	}
	slices.SortFunc(keys, func(a, b refusedBy) int {
		return cmp.Or(cmp.Compare(a.organization, b.organization), cmp.Compare(a.actor, b.actor),
			cmp.Compare(a.via, b.via),
			cmp.Compare(a.reason, b.reason))
	})
	return keys
}

// refused is what a transaction refused: known for good when it is over.
type refused struct {
	journals map[string]int
	counted  refusalCounts
	batch    *batchRefusals // of the batch that is at work; nil: none is
	told     []ledger.Event // taken from the engine's refusals, and journaled
}

// batchRefusals are those of one batch.
type batchRefusals struct {
	left    int // that may still be journaled with their decisions
	counted refusalCounts
}

// OnlyCounts reports whether a refusal would only be counted, and its answer holds no
// offers, so that none need be looked for.
func (tx *Tx) OnlyCounts() bool { return tx.refused.batch != nil && tx.refused.batch.left == 0 }

// mayJournal reports whether a refusal may have an event of its own; if not, it is
// counted.
func (tx *Tx) mayJournal(organizationID string, reason admission.Code) bool {
	by := refusedBy{organizationID, tx.Actor.KeyID, tx.Actor.Via, reason}
	batch := tx.refused.batch
	switch {
	case tx.Actor.IsSystem():
		return true
	case tx.OnlyCounts():
		batch.counted[by]++
		return false
	case tx.journaledThisMinute(by.actor) >= refusalsPerMinute:
		tx.refused.countRefused(by, 1)
		return false
	}
	if batch != nil {
		batch.left--
	}
	if tx.refused.journals == nil {
		tx.refused.journals = map[string]int{}
	}
	tx.refused.journals[by.actor]++
	return true
}

// journaledThisMinute is how many refusals of a key were journaled in this minute.
func (tx *Tx) journaledThisMinute(key string) int {
	return tx.refused.journals[key] + tx.Engine.refusals.countJournaled(key, tx.Now())
}

func (r *refused) countRefused(by refusedBy, n int) {
	if r.counted == nil {
		r.counted = refusalCounts{}
	}
	r.counted[by] += n
}

// BeginBatch bounds the refusals that are journaled until the function that it
// returns is called, which tells of the rest.
func (tx *Tx) BeginBatch() (end func()) {
	b := &batchRefusals{left: refusalsPerBatch, counted: refusalCounts{}}
	tx.refused.batch = b
	return func() {
		tx.refused.batch = nil
		if tx.journaledThisMinute(tx.Actor.KeyID) >= refusalsPerMinute {
			for by, n := range b.counted {
				tx.refused.countRefused(by, n)
			}
			return
		}
		for _, e := range b.counted.refusalEvents(tx.Now()) {
			tx.AddEvent(e)
		}
	}
}

// tellRefusals journals what was counted in minutes that are over, whoever's turn
// it is.
func (tx *Tx) tellRefusals() {
	if tx.IsDryRun {
		return
	}
	tx.refused.told = tx.Engine.refusals.takeUntold(tx.Now())
	for _, e := range tx.refused.told {
		e.At = tx.Now()
		tx.Change.Events = append(tx.Change.Events, e)
	}
}

// rememberRefused keeps what a transaction refused, once it is over.
func (r *refusals) rememberRefused(tx *Tx) {
	if len(tx.refused.journals) == 0 && len(tx.refused.counted) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnMinute(tx.Now())
	for key, n := range tx.refused.journals {
		r.journals[key] += n
	}
	r.counted.addCounts(tx.refused.counted)
}
