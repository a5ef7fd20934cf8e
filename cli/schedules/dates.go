package schedules

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// SayCost tells what the booked dates of a schedule cost in all, and what may not
// have been meant.
func SayCost(a *app.App, cmd *cobra.Command, made contract.Schedule) {
	booked := 0
	for _, o := range made.Next {
		if o.Cost != nil {
			booked++
		}
	}
	if made.Cost != nil && booked > 0 {
		a.Say(cmd, "Costs     %s: %s", format.Money(*made.Cost),
			format.Count(booked, "date")+" so far, and each later one as much again")
	}
	for _, r := range made.Remarks {
		a.SayNote(cmd, r)
	}
}

// SayDates tells what became of a schedule's coming dates.
func SayDates(a *app.App, cmd *cobra.Command, dates []contract.Occurrence) {
	if len(dates) == 0 {
		a.Say(cmd, "Next  no date is still to come")
	}
	for _, o := range dates {
		a.Say(cmd, "%s", strings.TrimRight(fmt.Sprintf("Next  %s  %-10s  %s", o.LocalStart, o.State, dateText(o)), " "))
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
