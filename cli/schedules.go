package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var scheduleView = view[contract.Schedule]{
	name: func(x contract.Schedule) string { return x.ID },
	columns: []column[contract.Schedule]{
		{head: "ID", cell: func(x contract.Schedule) string { return x.ID }},
		{head: "NAME", cell: func(x contract.Schedule) string { return orDash(x.Name) }},
		{head: "GPUS", right: true, cell: func(x contract.Schedule) string { return strconv.Itoa(x.GPUs) }},
		{head: "RULE", cell: func(x contract.Schedule) string { return x.RRule }},
		{head: "START", cell: func(x contract.Schedule) string { return x.StartLocal }},
		{head: "ZONE", cell: func(x contract.Schedule) string { return x.Timezone }},
		{head: "FOR", right: true, cell: func(x contract.Schedule) string { return formatSeconds(x.DurationSeconds) }},
		{head: "PAUSED", cell: func(x contract.Schedule) string { return yesNo(x.Paused) }},
		{head: "POOL", cell: func(x contract.Schedule) string { return firstNonEmpty(x.PoolName, x.PoolID) }},
		{head: "LAYOUT",
			cell: func(x contract.Schedule) string { return askedLayout(x.Nodes, x.GPUsPerNode, x.Spread) },
			wide: true},
		{head: "SKIPPED", cell: func(x contract.Schedule) string { return orDash(strings.Join(x.ExDates, " ")) },
			wide: true},
		{head: "DST", cell: func(x contract.Schedule) string { return x.DSTPolicy }, wide: true},
	},
}

func (a *app) newSchedulesCommand() *cobra.Command {
	return newGroupCommand("schedules", "See and change recurring reservations",
		newListCommand(a, "schedules", scheduleView, (*client.Client).Schedules), a.newShowScheduleCommand(),
		a.newPauseScheduleCommand("pause", "Make no more reservations until resumed", true),
		a.newPauseScheduleCommand("resume", "Make reservations again", false), a.newDeleteScheduleCommand())
}

func (a *app) newShowScheduleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show SCHEDULE", Short: "Show one schedule, its next dates and what became of each",
		Args: exactArgs("SCHEDULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.Schedule(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := showOne(a, cmd, scheduleView, got); err != nil {
				return err
			}
			coming, err := api.Occurrences(cmd.Context(), args[0], time.Time{}, time.Time{})
			if err != nil {
				return err
			}
			a.sayDates(cmd, coming)
			return nil
		},
	}
}

// sayCost tells what the booked dates of a schedule cost in all, and what may not
// have been meant.
func (a *app) sayCost(cmd *cobra.Command, made contract.Schedule) {
	booked := 0
	for _, o := range made.Next {
		if o.Cost != nil {
			booked++
		}
	}
	if made.Cost != nil && booked > 0 {
		a.say(cmd, "Costs     %s: %s", formatMoney(*made.Cost),
			formatCount(booked, "date")+" so far, and each later one as much again")
	}
	for _, r := range made.Remarks {
		a.sayNote(cmd, r)
	}
}

// sayDates tells what became of a schedule's coming dates.
func (a *app) sayDates(cmd *cobra.Command, dates []contract.Occurrence) {
	if len(dates) == 0 {
		a.say(cmd, "Next  no date is still to come")
	}
	for _, o := range dates {
		a.say(cmd, "%s", strings.TrimRight(fmt.Sprintf("Next  %s  %-10s  %s", o.LocalStart, o.State, dateText(o)), " "))
	}
}

// dateText says why a date is as it is, or what it has.
func dateText(o contract.Occurrence) string {
	switch {
	case o.Message != "":
		return plainText(o.Message)
	case o.ReservationID != "" && o.Reason != "":
		return fmt.Sprintf("%s (%s)", o.ReservationID, o.Reason)
	case o.ReservationID != "":
		return o.ReservationID
	case !o.AskedAt.IsZero():
		return "is asked for about " + formatTime(o.AskedAt)
	default:
		return ""
	}
}

func (a *app) newPauseScheduleCommand(use, short string, paused bool) *cobra.Command {
	return &cobra.Command{
		Use: use + " SCHEDULE", Short: short, Args: exactArgs("SCHEDULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.PauseSchedule(a.withIdempotencyKey(cmd.Context()), args[0], paused)
			if err != nil {
				return err
			}
			return showOne(a, cmd, scheduleView, got)
		},
	}
}

func (a *app) newDeleteScheduleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete SCHEDULE", Short: "End a schedule", Args: exactArgs("SCHEDULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.confirm(cmd, args, "Delete schedule "+args[0]); err != nil {
				return err
			}
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.DeleteSchedule(a.withIdempotencyKey(cmd.Context()), args[0])
			if err != nil {
				return err
			}
			if got.Cancelled != nil {
				a.say(cmd, "Deleted %s, and cancelled %s.", args[0], formatCount(*got.Cancelled, "reservation"))
			}
			return nil
		},
	}
}
