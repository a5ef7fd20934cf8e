package schedules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// SayCost tells what the booked dates of a schedule cost in all, and what may not
// have been meant.
func SayCost(a *app.App, cmd *cobra.Command, made contract.Schedule) {
	if text := costText(made); text != "" {
		a.Say(cmd, "Costs     %s", text)
	}
	for _, r := range made.Remarks {
		a.SayNote(cmd, r)
	}
}

// costText is the sum of the dates that are booked, and what each costs: a schedule
// that has no end books more of them.
func costText(made contract.Schedule) string {
	var each []string
	for _, o := range made.Next {
		if o.Cost != nil {
			each = append(each, format.Money(*o.Cost))
		}
	}
	if made.Cost == nil || len(each) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s for %s so far", format.Money(*made.Cost), format.Count(len(each), "date"))
	if slices.Sort(each); each[0] == each[len(each)-1] {
		text += ", " + each[0] + " each"
	}
	return text
}

// SayDates tells what became of a schedule's coming dates.
func SayDates(a *app.App, cmd *cobra.Command, dates []contract.Occurrence) {
	if len(dates) == 0 {
		a.Say(cmd, "Dates     none are left")
	}
	for _, o := range dates {
		a.Say(cmd, "%s", strings.TrimRight(fmt.Sprintf("Date      %s  %-10s  %s", o.LocalStart, o.State, dateText(o)), " "))
	}
}

// dateText says why a date is as it is, or what it has.
func dateText(o contract.Occurrence) string {
	switch {
	case o.Message != "":
		return format.Plain(o.Message)
	case o.ReservationID != "" && o.Reason != "":
		return fmt.Sprintf("%s (%s)", o.ReservationID, o.Reason)
	case o.ReservationID != "":
		return o.ReservationID
	case !o.AskedAt.IsZero():
		return "is asked for about " + format.Time(o.AskedAt)
	default:
		return ""
	}
}
