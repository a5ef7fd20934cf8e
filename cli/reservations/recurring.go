package reservations

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/cli/schedules"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

func reserveRecurring(a *app.App, cmd *cobra.Command, r reserveOptions, start when.Moment, zone *time.Location) error {
	in, err := r.buildSchedule(cmd, start, zone)
	if err != nil {
		return err
	}
	if _, err := recurrence.Parse(recurrence.Spec{StartLocal: in.StartLocal, Timezone: in.Timezone, RRule: in.RRule,
		ExDates: in.ExDates,
		Length:  r.length.Duration(), Policy: recurrence.Policy(in.DSTPolicy)}); err != nil {
		return wrongRule(cmd, err)
	}
	a.Say(cmd, "Read as   %s at %s for %s, %s", in.RRule, start.Wall.Format("15:04"),
		format.Duration(r.length.Duration()),
		in.Timezone)
	a.SayNote(cmd, start.FoldWarning(zone))
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	pool, err := api.Pool(cmd.Context(), r.pool)
	if err != nil {
		return err
	}
	a.Say(cmd, "Warm-up   about %s before each start (p95 of %s, and a margin)",
		format.Duration(time.Duration(pool.LeadSeconds*float64(time.Second))), format.Count(pool.BootSamples, "boot"))
	got, err := api.CreateSchedule(a.WithIdempotencyKey(cmd.Context()), in, client.Options{DryRun: a.Flags.DryRun})
	if err != nil {
		return err
	}
	if a.Flags.DryRun {
		a.Say(cmd, "Dry run: nothing was changed.")
		for i := range got.Next { // it belongs to nothing
			got.Next[i].ReservationID = ""
		}
	}
	if err := output.One(a, cmd, schedules.View, got); err != nil {
		return err
	}
	schedules.SayCost(a, cmd, got)
	schedules.SayDates(a, cmd, got.Next)
	if !a.Flags.DryRun {
		a.Say(cmd, "Next:  forewarm schedules show %s  ·  forewarm schedules pause %s", got.ID, got.ID)
	}
	return nil
}

// buildSchedule is the request for a recurring reservation.
func (r reserveOptions) buildSchedule(cmd *cobra.Command, start when.Moment,
	zone *time.Location) (contract.ScheduleCreate, error) {
	rule, err := when.ParseEvery(r.every)
	if err != nil {
		return contract.ScheduleCreate{}, err
	}
	switch {
	case r.pool == "":
		return contract.ScheduleCreate{}, exit.UsageErrorf("forewarm pools list",
			"--every needs --pool: a schedule belongs to one pool")
	case r.model != "" || r.needs != (contract.Needs{}):
		return contract.ScheduleCreate{}, exit.UsageErrorf("forewarm reserve --help",
			"--every works with --pool only: a schedule belongs to one pool")
	case r.name == "":
		return contract.ScheduleCreate{}, exit.UsageErrorf(flags.CommandWith(cmd, "--name NAME"),
			"--every needs --name: a schedule is known by its name")
	case r.class != "" || r.onFull != "fail":
		return contract.ScheduleCreate{}, exit.UsageErrorf("forewarm reserve --help",
			"--class and --on-full cannot be used with --every: a schedule books guaranteed reservations")
	}
	return contract.ScheduleCreate{Pool: r.pool, Name: r.name, GPUs: r.gpus, Layout: r.layout,
			StartLocal: start.Wall.Format("2006-01-02T15:04:05"),
			Timezone:   zone.String(), RRule: rule, ExDates: r.skip, DurationSeconds: r.length.Seconds(),
			DSTPolicy: r.dst},
		nil
}

func wrongRule(cmd *cobra.Command, err error) error {
	var e *recurrence.Error
	if !errors.As(err, &e) {
		return err
	}
	u := exit.UsageErrorf("forewarm reserve --help", "%s", problem.FieldText(cmd,
		contract.FieldError{Pointer: "/" + e.Field, Message: e.Rule}))
	if e.Fix != "" && !strings.Contains(e.Rule, e.Fix) {
		u.Detail = []string{"Such as " + e.Fix}
	}
	return u
}
