package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/admission"
)

// How many refusals of one key are journaled each with its decision, in a minute
// and of one batch. The others are counted, and told of in one event: a journal
// that refusals could fill would be a way to fill the disk.
const (
	refusalsPerMinute = 100
	refusalsPerBatch  = 10
)

// refusals is what this process knows of the refusals of a minute. Only whoever
// leads the group uses it. What is counted and not told yet is lost with the process.
type refusals struct {
	minute   time.Time
	journals map[string]int // by key: journaled with their decisions
	counted  refusalCounts  // of this minute
	untold   []Event        // of minutes that are over
}

// refusalCounts are refusals that have no event of their own.
type refusalCounts map[refusedBy]int

// refusedBy is what refusals are counted by.
type refusedBy struct {
	organization, actor, via string
	reason                   admission.Code
}

// turnMinute begins the count of a new minute.
func (r *refusals) turnMinute(now time.Time) {
	if minute := now.Truncate(time.Minute); !minute.Equal(r.minute) {
		r.untold = append(r.untold, r.counted.refusalEvents(r.minute)...)
		r.minute, r.journals, r.counted = minute, map[string]int{}, refusalCounts{}
	}
}

// addCounts adds up what others counted.
func (c refusalCounts) addCounts(o refusalCounts) {
	for by, n := range o {
		c[by] += n
	}
}

// refusalEvents tells of what was counted, an event for each key of an organization.
func (c refusalCounts) refusalEvents(since time.Time) []Event {
	reasons := map[refusedBy][]string{}
	for _, by := range c.sortedKeys() {
		who := by
		who.reason = ""
		reasons[who] = append(reasons[who], fmt.Sprintf("%d for %s", c[by], by.reason))
	}
	var events []Event
	for _, by := range refusalCountsOf(reasons).sortedKeys() {
		message := fmt.Sprintf("since %s beyond those that are listed: %s", since.UTC().Format(time.TimeOnly),
			strings.Join(reasons[by], ", "))
		events = append(events, Event{
			OrganizationID: by.organization, Type: "requests.refused", Subject: by.actor, Actor: by.actor, Via: by.via,
			Message: clipText(message, 200),
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
	told     int            // of Ledger.refusals.untold
}

// batchRefusals are those of one batch.
type batchRefusals struct {
	left    int // that may still be journaled with their decisions
	counted refusalCounts
}

// onlyCounts reports whether a refusal would only be counted, and its answer holds no
// offers, so that none need be looked for.
func (tx *groupTx) onlyCounts() bool { return tx.refused.batch != nil && tx.refused.batch.left == 0 }

// mayJournal reports whether a refusal may have an event of its own; if not, it is
// counted.
func (tx *groupTx) mayJournal(organizationID string, reason admission.Code) bool {
	by := refusedBy{organizationID, tx.actor.KeyID, tx.actor.Via, reason}
	batch := tx.refused.batch
	switch {
	case tx.actor.isSystem():
		return true
	case tx.onlyCounts():
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
func (tx *groupTx) journaledThisMinute(key string) int {
	n := tx.refused.journals[key]
	if tx.engine.refusals.minute.Equal(tx.now().Truncate(time.Minute)) {
		n += tx.engine.refusals.journals[key]
	}
	return n
}

func (r *refused) countRefused(by refusedBy, n int) {
	if r.counted == nil {
		r.counted = refusalCounts{}
	}
	r.counted[by] += n
}

// beginBatch bounds the refusals that are journaled until the function that it
// returns is called, which tells of the rest.
func (tx *groupTx) beginBatch() (end func()) {
	b := &batchRefusals{left: refusalsPerBatch, counted: refusalCounts{}}
	tx.refused.batch = b
	return func() {
		tx.refused.batch = nil
		if tx.journaledThisMinute(tx.actor.KeyID) >= refusalsPerMinute {
			for by, n := range b.counted {
				tx.refused.countRefused(by, n)
			}
			return
		}
		for _, e := range b.counted.refusalEvents(tx.now()) {
			tx.addEvent(e)
		}
	}
}

// tellRefusals journals what was counted in minutes that are over, whoever's turn
// it is.
func (tx *groupTx) tellRefusals() {
	if tx.dryRun {
		return
	}
	tx.engine.refusals.turnMinute(tx.now())
	for _, e := range tx.engine.refusals.untold {
		e.At = tx.now()
		tx.change.Events = append(tx.change.Events, e)
	}
	tx.refused.told = len(tx.engine.refusals.untold)
}

// rememberRefused keeps what a transaction refused, once it is over.
func (r *refusals) rememberRefused(tx *groupTx) {
	if tx.refused.told == 0 && len(tx.refused.journals) == 0 && len(tx.refused.counted) == 0 {
		return
	}
	r.turnMinute(tx.now())
	r.untold = r.untold[tx.refused.told:]
	for key, n := range tx.refused.journals {
		r.journals[key] += n
	}
	r.counted.addCounts(tx.refused.counted)
}
