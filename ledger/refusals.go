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
// leads the lane uses it. What is counted and not told yet is lost with the process.
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

// refused is what a unit refused: known for good when it is over.
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
func (u *groupTx) onlyCounts() bool { return u.refused.batch != nil && u.refused.batch.left == 0 }

// mayJournal reports whether a refusal may have an event of its own; if not, it is
// counted.
func (u *groupTx) mayJournal(organizationID string, reason admission.Code) bool {
	by := refusedBy{organizationID, u.actor.KeyID, u.actor.Via, reason}
	batch := u.refused.batch
	switch {
	case u.actor.isSystem():
		return true
	case u.onlyCounts():
		batch.counted[by]++
		return false
	case u.journaledThisMinute(by.actor) >= refusalsPerMinute:
		u.refused.countRefused(by, 1)
		return false
	}
	if batch != nil {
		batch.left--
	}
	if u.refused.journals == nil {
		u.refused.journals = map[string]int{}
	}
	u.refused.journals[by.actor]++
	return true
}

// journaledThisMinute is how many refusals of a key were journaled in this minute.
func (u *groupTx) journaledThisMinute(key string) int {
	n := u.refused.journals[key]
	if u.Ledger.refusals.minute.Equal(u.now().Truncate(time.Minute)) {
		n += u.Ledger.refusals.journals[key]
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
func (u *groupTx) beginBatch() (end func()) {
	b := &batchRefusals{left: refusalsPerBatch, counted: refusalCounts{}}
	u.refused.batch = b
	return func() {
		u.refused.batch = nil
		if u.journaledThisMinute(u.actor.KeyID) >= refusalsPerMinute {
			for by, n := range b.counted {
				u.refused.countRefused(by, n)
			}
			return
		}
		for _, e := range b.counted.refusalEvents(u.now()) {
			u.addEvent(e)
		}
	}
}

// tellRefusals journals what was counted in minutes that are over, whoever's turn
// it is.
func (u *groupTx) tellRefusals() {
	if u.dryRun {
		return
	}
	u.Ledger.refusals.turnMinute(u.now())
	for _, e := range u.Ledger.refusals.untold {
		e.At = u.now()
		u.change.Events = append(u.change.Events, e)
	}
	u.refused.told = len(u.Ledger.refusals.untold)
}

// rememberRefused keeps what a unit refused, once it is over.
func (r *refusals) rememberRefused(u *groupTx) {
	if u.refused.told == 0 && len(u.refused.journals) == 0 && len(u.refused.counted) == 0 {
		return
	}
	r.turnMinute(u.now())
	r.untold = r.untold[u.refused.told:]
	for key, n := range u.refused.journals {
		r.journals[key] += n
	}
	r.counted.addCounts(u.refused.counted)
}
