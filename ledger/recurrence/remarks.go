package recurrence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/forewarm/forewarm/core/phrase"
)

// CheckSkipped refuses dates to leave out that the rule does not have: leaving them
// out does nothing, and who asked for it meant another one. The error is an *Error.
func (s Spec) CheckSkipped() error {
	if len(s.ExDates) == 0 {
		return nil
	}
	dates, skipped := s, slices.Sorted(slices.Values(s.ExDates))
	dates.ExDates = nil
	from := time.Date(firstYear-1, 1, 1, 0, 0, 0, 0, time.UTC)
	last, err := time.Parse(layoutDate, skipped[len(skipped)-1])
	if err != nil {
		return fmt.Errorf("reading a date to leave out: %w", err)
	}
	last = last.Add(margin)
	all, err := dates.Between(from, last, mostDates)
	if err != nil {
		return err
	}
	next, err := dates.Between(last, last.Add(4*366*24*time.Hour), 1)
	if err != nil {
		return err
	}
	all = append(all, next...)
	for _, date := range skipped {
		i, ok := slices.BinarySearchFunc(all, date, func(o Occurrence,
			d string) int {
			return strings.Compare(o.Date, d)
		})
		if ok {
			continue
		}
		var near []string
		for _, o := range all[max(0, i-1):min(len(all), i+1)] {
			near = append(near, o.Date)
		}
		day, _ := time.Parse(layoutDate, date) // read by Parse
		return &Error{Field: FieldExDates,
			Rule: fmt.Sprintf("must be dates that the rule gives; got %s, a %s; the nearest: %s", date, day.Weekday(),
				strings.Join(near, ", "))}
	}
	return nil
}

// mostDates is more than a rule that is run from day to day gives in its time.
const mostDates = 100_000

// Remarks says, in sentences for people, what of the rule from a time on may not be
// what somebody meant: dates that overlap, and months without one.
func (r Rule) Remarks(from time.Time) []string {
	return slices.DeleteFunc([]string{r.overlapRemark(from), r.gapRemark(from)}, func(s string) bool { return s == "" })
}

// overlapRemark says that dates begin before the ones before them are over.
func (r Rule) overlapRemark(from time.Time) string {
	dates := r.Between(from, from.Add(10*366*24*time.Hour), 366)
	n, most := 0, time.Duration(0)
	for i := 1; i < len(dates); i++ {
		if by := dates[i-1].End.Sub(dates[i].Start); by > 0 {
			n, most = n+1, max(most, by)
		}
	}
	switch {
	case n == 0:
		return ""
	case n == len(dates)-1:
		return fmt.Sprintf("each date overlaps the next, by up to %s: meanwhile it holds its GPUs twice",
			phrase.Length(most))
	default:
		return fmt.Sprintf("%d of the coming %d dates overlap the next, by up to %s: meanwhile it holds its GPUs twice",
			n, len(dates), phrase.Length(most))
	}
}

// gapRemark says which months have no date, because they are too short.
func (r Rule) gapRemark(from time.Time) string {
	if r.option.Freq != rrule.MONTHLY || len(r.option.Byweekday) > 0 {
		return ""
	}
	days := r.option.Bymonthday
	if len(days) == 0 {
		days = []int{r.option.Dtstart.Day()}
	}
	day := slices.Min(days)
	if day <= 28 { // it is in every month, or counted from the end, which is in all but for days that nobody asks for
		return ""
	}
	var without []time.Month
	for _, m := range r.comingMonths(from) {
		if m.AddDate(0, 1, -1).Day() < day && !slices.Contains(without, m.Month()) {
			without = append(without, m.Month())
		}
	}
	if len(without) == 0 {
		return ""
	}
	slices.Sort(without)
	names := make([]string, len(without))
	for i, m := range without {
		names[i] = m.String()
		if m == time.February && day == 29 {
			names[i] += " (but in leap years)"
		}
	}
	return fmt.Sprintf("no date in %s, which %s no day %d; for the last day of each month write "+
		"FREQ=MONTHLY;BYMONTHDAY=-1", strings.Join(names, ", "),
		map[bool]string{true: "has", false: "have"}[len(names) == 1], day)
}

// comingMonths are the first days of the rule's coming months, of four years or as long
// as it lasts.
func (r Rule) comingMonths(from time.Time) (all []time.Time) {
	first := r.option.Dtstart
	end := floatingTime(from, r.zone).AddDate(4, 0, 0)
	if end.Before(first) {
		end = first.AddDate(4, 0, 0)
	}
	if dates := r.Between(from, from.Add(10*366*24*time.Hour), mostDates); len(dates) > 0 {
		if last := floatingTime(dates[len(dates)-1].Start, r.zone); last.Before(end) {
			end = last
		}
	}
	now := floatingTime(from, r.zone)
	for m := time.Date(first.Year(), first.Month(), 1, 0, 0, 0, 0, time.UTC); m.Before(end); m = m.AddDate(0,
		max(1, r.option.Interval), 0) {
		if !m.AddDate(0, 1, 0).Before(now) {
			all = append(all, m)
		}
	}
	return all
}
