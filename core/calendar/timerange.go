package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// TimeRange is a window that may move and stretch, in the terms of Google's
// Calendar Advisory (timeRangeSpec). What is zero does not bind; but a search
// needs a first start and a least length, which may also follow from the end.
// When nothing bounds the length from above, it is the least.
type TimeRange struct {
	StartNotEarlierThan, StartNotLaterThan time.Time
	EndNotEarlierThan, EndNotLaterThan     time.Time
	MinDuration, MaxDuration               time.Duration
}

// RangeError says which field of a TimeRange breaks which rule. Fields are named
// as on the wire.
type RangeError struct {
	Field, Rule string
}

// Error tells field and rule.
func (e *RangeError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Rule) }

// Check returns a *RangeError for the first rule that is broken, or nil.
func (r TimeRange) Check() error {
	open := time.Time.IsZero
	limit := r.MaxDuration > 0
	for _, c := range []struct {
		broken      bool
		field, rule string
	}{
		{open(r.StartNotEarlierThan), "start_time_not_earlier_than", "must be given: a search needs a first start"},
		{r.MinDuration < 0, "min_duration", "must not be negative"},
		{r.MaxDuration < 0, "max_duration", "must not be negative"},
		{r.MinDuration == 0 && open(r.EndNotEarlierThan), "min_duration",
			"must be given, or end_time_not_earlier_than"},
		{limit && r.MaxDuration < r.MinDuration, "max_duration", "must not be less than min_duration"},
		{!open(r.StartNotLaterThan) && r.StartNotLaterThan.Before(r.StartNotEarlierThan),
			"start_time_not_later_than", "must not be before start_time_not_earlier_than"},
		{!open(r.EndNotLaterThan) && r.EndNotLaterThan.Before(r.EndNotEarlierThan),
			"end_time_not_later_than", "must not be before end_time_not_earlier_than"},
		{!open(r.EndNotLaterThan) && r.EndNotLaterThan.Before(r.StartNotEarlierThan.Add(max(r.MinDuration, 1))),
			"end_time_not_later_than", "leaves no time for min_duration after start_time_not_earlier_than"},
		{limit && !open(r.StartNotLaterThan) && r.StartNotLaterThan.Add(r.MaxDuration).Before(r.EndNotEarlierThan),
			"end_time_not_earlier_than", "is not reached by max_duration from start_time_not_later_than"},
		{r.MinDuration == 0 && !open(r.EndNotEarlierThan) && !r.StartNotEarlierThan.Before(r.EndNotEarlierThan),
			"min_duration", "must be given when end_time_not_earlier_than is not after start_time_not_earlier_than"},
	} {
		if c.broken {
			return &RangeError{Field: c.field, Rule: c.rule}
		}
	}
	return nil
}

// FindRange returns the earliest window in the range in which the shape has a
// place, of those that start then the longest, and the best slots for it (see
// FindInto). A range that fails Check has none.
func (s *Slots) FindRange(shape capacity.Shape, r TimeRange, tiers Tiers) (Interval, []int, bool) {
	if r.Check() != nil {
		return Interval{}, nil, false
	}
	w := r.newWish(shape, tiers)
	start, ok := firstStart(s, w)
	if !ok {
		return Interval{}, nil, false
	}
	end, ok := lastEnd(s, w, start, r.longestEnd(w, start))
	if !ok {
		return Interval{}, nil, false
	}
	iv := Interval{Start: timeLike(r.StartNotEarlierThan, start), End: timeLike(r.StartNotEarlierThan, end)}
	slots, ok := s.FindInto(nil, shape, iv, tiers)
	return iv, slots, ok
}

// newWish is the search for the earliest start.
func (r TimeRange) newWish(shape capacity.Shape, tiers Tiers) wish {
	w := wish{shape: shape, length: max(r.MinDuration, 1), tiers: tiers,
		from: toInstant(r.StartNotEarlierThan), until: lastInstant, end: firstInstant}
	if !r.EndNotEarlierThan.IsZero() {
		w.end = toInstant(r.EndNotEarlierThan)
		if r.MaxDuration > 0 {
			w.from = max(w.from, shiftInstant(w.end, -r.MaxDuration))
		}
		if r.MinDuration == 0 && r.MaxDuration == 0 && r.EndNotLaterThan.IsZero() {
			w.until = w.end - 1 // the end alone says how long
		}
	}
	if !r.StartNotLaterThan.IsZero() {
		w.until = min(w.until, toInstant(r.StartNotLaterThan))
	}
	if !r.EndNotLaterThan.IsZero() {
		w.until = min(w.until, shiftInstant(toInstant(r.EndNotLaterThan), -w.length))
	}
	return w
}

// longestEnd is the latest end that the range allows for a start.
func (r TimeRange) longestEnd(w wish, start int64) int64 {
	end := int64(lastInstant)
	if r.MaxDuration > 0 {
		end = shiftInstant(start, r.MaxDuration)
	}
	if !r.EndNotLaterThan.IsZero() {
		return min(end, toInstant(r.EndNotLaterThan))
	}
	if r.MaxDuration == 0 {
		return max(shiftInstant(start, w.length), w.end)
	}
	return end
}

// lastEnd returns the latest end, up to longest, for which enough slots are free
// from start on.
func lastEnd(s *Slots, w wish, start, longest int64) (int64, bool) {
	end, ends := longest, make([]int64, 0, len(s.lines))
	for _, n := range needsOf(w.shape) {
		ends = ends[:0]
		for slot := range w.tiers.allowedBelow(len(s.lines)).All() {
			if end := s.lines[slot].firstAbove(s.perSlot-n.gpus, start); end != never {
				ends = append(ends, shiftInstant(end, -s.margin))
			} else {
				ends = append(ends, lastInstant)
			}
		}
		if len(ends) < n.slots {
			return 0, false
		}
		slices.SortFunc(ends, func(a, b int64) int { return cmp.Compare(b, a) })
		end = min(end, ends[n.slots-1])
	}
	return end, end > start && end >= max(shiftInstant(start, w.length), w.end)
}
