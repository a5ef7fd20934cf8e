package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
)

// Fingerprint is the same for two effects that nobody would tell apart: the same rows
// come, change and end, in the same places, at the same price. Times that only
// say when the request ran do not count, nor do the ids of new rows, nor what else
// the organization holds. It is a line for each row; see fingerprintLine.
func (e Effect) Fingerprint() string { return strings.Join(e.fingerprintLines(false), "\n") }

// CompareTo tells how the effect departs from the one of a mark; nothing: it is that
// one. GPUs that are there at once are what was shown, too, where there was to be a
// wait.
func (e Effect) CompareTo(mark string) (shown, now []string) {
	shown, now = differingLines(strings.Split(mark, "\n"), e.fingerprintLines(false))
	if waiting, then := differingLines(strings.Split(mark, "\n"),
		e.fingerprintLines(true)); len(waiting)+len(then) < len(shown)+
		len(now) {
		return waiting, then
	}
	return shown, now
}

// fingerprintLines lists the lines of Mark; with wait, as if new allocations had to wait.
func (e Effect) fingerprintLines(wait bool) []string {
	var lines []string
	for _, p := range e.Organizations {
		lines = append(lines, fingerprintLine("organization", p.After.ID, p.After.ID, "limits", p.After.Limits))
	}
	for _, p := range e.Pools {
		before, after := "", fmt.Sprintf("%+v", p.After.Pool)
		if p.Before != nil {
			before = fmt.Sprintf("%+v", p.Before.Pool)
		}
		if before != after { // else only what was learned changed
			lines = append(lines, fingerprintLine("pool", p.After.ID, "", "definition", after))
		}
	}
	for _, p := range e.Nodes {
		if p.Before == nil || p.Before.State() != p.After.State() {
			lines = append(lines, fingerprintLine("node", existingID(p.Before != nil, p.After.ID), "", "slot",
				p.After.Slot,
				"state", p.After.State()))
		}
	}
	for _, p := range e.Reservations {
		lines = append(lines, fingerprintReservation(p))
	}
	for _, p := range e.Allocations {
		lines = append(lines, fingerprintAllocation(p, wait))
	}
	slices.Sort(lines)
	return lines
}

// existingID is the id of a row that was there before.
func existingID(before bool, id string) string {
	if before {
		return id
	}
	return "new"
}

func fingerprintReservation(p Pair[reservation.Reservation]) string {
	r := p.After
	cost := r.Cost
	if !r.Live() {
		cost = 0 // what it really held grows with the time until it ends
	}
	return fingerprintLine("reservation", existingID(p.Before != nil, r.ID), r.OrganizationID, "pool", r.PoolID,
		"class",
		r.Class, "state", r.State(),
		"displaced", r.Reason == "displaced", "shape", r.Shape, "places", r.Slots,
		"window", fmt.Sprintf("%s to %s", FormatTime(r.Window.Start), FormatTime(r.Window.End)), "microseconds",
		fmt.Sprintf("%d-%d", r.Window.Start.UnixMicro(), r.Window.End.UnixMicro()), "cost", cost, "micro-dollars",
		int64(cost), "degraded", r.Degraded)
}

func fingerprintAllocation(p Pair[allocation.Allocation], wait bool) string {
	a := p.After
	state := a.State()
	if wait && p.Before == nil {
		state = allocation.Pending
	}
	return fingerprintLine("allocation", existingID(p.Before != nil, a.ID), a.OrganizationID, "pool", a.PoolID,
		"state", state,
		"shape", a.Shape, "places", a.Slots,
		"lease", a.Lease, "reservations", a.Reservations)
}

// fingerprintLine is what matters of a row: its kind, its id, whose it is, and its fields
// by name.
func fingerprintLine(kind, id, organization string, fields ...any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\t%s\t%s", kind, id, organization)
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&b, "\t%v=%v", fields[i], fields[i+1])
	}
	return b.String()
}

// differingLines are the lines that only one of two sorted lists has.
func differingLines(a, b []string) (onlyA, onlyB []string) {
	b = slices.Clone(b)
	for _, line := range a {
		if i := slices.Index(b, line); i >= 0 {
			b = slices.Delete(b, i, i+1)
		} else if line != "" {
			onlyA = append(onlyA, line)
		}
	}
	return onlyA, slices.DeleteFunc(b, func(line string) bool { return line == "" })
}

// mostTold is how many differences are told one by one.
const mostTold = 5

// DescribeChanges tells an actor what a plan showed and what it would do now. The rows of
// others are only counted.
func DescribeChanges(actor Actor, shown, now []string) []string {
	var told []string
	others := 0
	tell := func(line, text string) {
		if whose := strings.Split(line, "\t")[2]; whose != "" && whose != actor.OrganizationID &&
			actor.Role != Operator {
			others++
			return
		}
		told = append(told, subjectOf(line)+" "+text)
	}
	for _, line := range shown {
		i := slices.IndexFunc(now, func(n string) bool { return subjectOf(n) == subjectOf(line) })
		if i < 0 {
			tell(line, "would not be there, or not change")
			continue
		}
		tell(line, fieldsBetween(line, now[i]))
		now = slices.Delete(slices.Clone(now), i, i+1)
	}
	for _, line := range now {
		if strings.Contains(line, "displaced=true") {
			tell(line, "would be displaced")
		} else {
			tell(line, "would come or change as well")
		}
	}
	if n := len(told) - mostTold; n > 0 {
		told = append(told[:mostTold], fmt.Sprintf("%d more differ", n))
	}
	if others > 0 {
		told = append(told, fmt.Sprintf("the outcome for %s of others differs", phrase.Count(others, "booking")))
	}
	return told
}

func subjectOf(line string) string {
	parts := strings.SplitN(line, "\t", 3)
	if parts[1] == "new" {
		return "the new " + parts[0]
	}
	return parts[0] + " " + parts[1]
}

// exact are fields that another one tells in words.
var exact = []string{"microseconds", "micro-dollars"}

// fieldsBetween names the fields in which two lines of one thing differ.
func fieldsBetween(shown, now string) string {
	a, b := strings.Split(shown, "\t")[3:], strings.Split(now, "\t")[3:]
	var parts []string
	for i := range min(len(a), len(b)) {
		name, was, _ := strings.Cut(a[i], "=")
		_, is, _ := strings.Cut(b[i], "=")
		if was != is && !slices.Contains(exact, name) {
			parts = append(parts, fmt.Sprintf("has %s %s instead of %s", name, is, was))
		}
	}
	if len(parts) == 0 {
		return "differs by less than is shown"
	}
	return strings.Join(parts, " and ")
}
