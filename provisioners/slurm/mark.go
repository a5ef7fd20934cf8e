package slurm

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// mark is until when work was told of, in whole seconds of the cluster's clock. With an
// id, only work that ended at that second and up to the id in order was.
type mark struct {
	at time.Time // zero: nothing was
	id string
}

var markPattern = regexp.MustCompile(`^slurm1-([1-9][0-9]{0,10})(?:-([0-9][0-9_*+]{0,60}@[0-9]{1,12}))?$`)

// markSlack is by how much two looks overlap: Slurm's times are whole seconds, and
// accounting hears of an end a moment later.
const markSlack = 2 * time.Second

func (m mark) text() provisioners.Mark {
	text := "slurm1-" + strconv.FormatInt(m.at.Unix(), 10)
	if m.id != "" {
		text += "-" + m.id
	}
	return provisioners.Mark(text)
}

func parseMark(text provisioners.Mark) (mark, error) {
	if text == "" {
		return mark{}, nil
	}
	parts := markPattern.FindStringSubmatch(string(text))
	if parts == nil {
		return mark{}, &provisioners.Error{Kind: provisioners.KindBadSpec, Message: fmt.Sprintf("mark %.40q", text),
			Err: provisioners.ErrForeignMark}
	}
	at, err := parseInstant(parts[1])
	return mark{at: at, id: parts[2]}, err
}

// hasTold reports whether work that ended was told of by the time of the mark.
func (m mark) hasTold(w provisioners.Work) bool {
	if m.id == "" {
		return w.EndedAt.Before(m.at.Add(-markSlack))
	}
	return compareEnds(w, provisioners.Work{ID: m.id, EndedAt: m.at}) <= 0
}

func compareEnds(a, b provisioners.Work) int {
	return cmp.Or(a.EndedAt.Compare(b.EndedAt), cmp.Compare(a.ID, b.ID))
}

// What one call tells of the past at most. After an outage the caller asks again, and
// again, and hears of it in portions.
const (
	longestSpan = time.Hour
	// shortestSpan is asked of an accounting that does not answer for longer ones.
	shortestSpan = time.Minute
	mostEnded    = 500
)

// span is the part of the past that one look tells of.
type span struct {
	told      mark
	until, at time.Time // until is at, unless the past is caught up with in portions
	accounted bool      // squeue has forgotten some of it
	last      *mark     // where a portion ended that was cut at mostEnded
	gaps      []string
}

// newSpan decides from when until when is told. Accounting that is there is asked for no
// more than a portion.
func newSpan(told mark, at time.Time, set settings, accounts bool, portion time.Duration) span {
	s := span{told: told, until: at, at: at}
	if told.at.IsZero() || at.Sub(told.at)+markSlack < set.minJobAge {
		return s
	}
	if !accounts || !set.tracksGPUs {
		s.gaps = append(s.gaps, "jobs that ended since the last look are forgotten, and accounting does not know them")
		return s
	}
	s.accounted = true
	s.limit(told.at.Add(portion))
	return s
}

func (s *span) limit(until time.Time) {
	if until.Before(s.at) {
		s.until = until
		s.gaps = append(s.gaps, fmt.Sprintf("catching up: told until %s", until.UTC().Format(time.RFC3339)))
	}
}

// mark is the one until which everything was told.
func (s *span) mark() provisioners.Mark {
	if s.last != nil {
		return s.last.text()
	}
	return mark{at: s.until}.text()
}

// hasMore reports whether the next look tells more of what was until now.
func (s *span) hasMore() bool { return s.last != nil || s.until.Before(s.at) }

// choose returns of the work that is over what is to be told: none that was, none beyond
// the span, and no more than mostEnded.
func (s *span) choose(over []provisioners.Work) []provisioners.Work {
	chosen := slices.DeleteFunc(over, func(w provisioners.Work) bool {
		return s.told.at.IsZero() || s.told.hasTold(w) || s.until.Before(s.at) && w.EndedAt.After(s.until)
	})
	if len(chosen) <= mostEnded {
		return chosen
	}
	slices.SortFunc(chosen, compareEnds)
	left := len(chosen) - mostEnded
	chosen = chosen[:mostEnded]
	s.last = &mark{at: chosen[mostEnded-1].EndedAt, id: chosen[mostEnded-1].ID}
	s.gaps = append(s.gaps, fmt.Sprintf("%d more jobs have ended, and are told next", left))
	return chosen
}

// addHistory adds what ended and squeue does not show any more. Accounting that does not
// answer hides nothing that squeue shows: the same span is asked for again, or a shorter
// one, as a history may be longer than accounting can tell in time.
func (o *Observed) addHistory(ctx context.Context, q *queueView, user string, s *span) {
	found, err := o.readHistory(ctx, user, s)
	o.mu.Lock()
	if o.portion = max(shortestSpan, o.portion/2); err == nil {
		o.portion = min(longestSpan, 4*o.portion)
	}
	o.mu.Unlock()
	if err != nil {
		q.cut = true
		q.note(fmt.Sprintf("accounting does not tell what has ended: %v", err))
		return
	}
	q.gaps = append(q.gaps, found.gaps...)
	shown := map[string]bool{}
	for _, r := range q.rows {
		shown[r.work.ID] = true
	}
	for _, r := range found.rows {
		if !shown[r.work.ID] {
			q.rows = append(q.rows, r)
		}
	}
}

func (c commands) readHistory(ctx context.Context, user string, s *span) (queueView, error) {
	if user == "" {
		var err error
		if user, err = c.askUser(ctx); err != nil {
			return queueView{}, err
		}
	}
	until := time.Duration(0)
	if s.until.Before(s.at) {
		until = s.at.Sub(s.until) - markSlack
	}
	return c.accountedWork(ctx, user, s.at.Sub(s.told.at)+markSlack, max(0, until))
}
