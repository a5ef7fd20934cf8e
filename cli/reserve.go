package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

// reserveFlags are what forewarm reserve is told.
type reserveFlags struct {
	gpus                    int
	pool, model, name       string
	at, every, zone, onFull string
	class, dst, workload    string
	notBefore, notAfter     string
	skip                    []string
	length                  span
	layout                  contract.Layout
	needs                   contract.Needs
}

func (a *app) newReserveCommand() *cobra.Command {
	var r reserveFlags
	c := a.newBaseReserveCommand(&r)
	c.Short += ", once or again and again"
	f := c.Flags()
	f.StringVar(&r.every, "every", "", "repeat: weekday, weekend, daily, weekly, monthly or an RRULE")
	f.StringSliceVar(&r.skip, "skip", nil, "with --every: local dates without it, such as 2026-12-24")
	f.StringVar(&r.dst, "dst", "",
		"with --every: when summer time leaves the start out, shift or skip it (default shift)")
	return c
}

// reserveText says what the flags of reserve are together.
const reserveText = `Which GPUs: --gpus, and --pool, or what the pool must have: --model, --region, --min-gpu-memory, --min-node-memory. How they lie
on nodes: --nodes, --gpus-per-node, --spread; two of the three numbers give the third.
When: --at and --for, in the zone --tz; or --not-before, --not-after or both with --for, for the first time at which there is
room. Without room it fails and says what there is instead; --on-full queue takes a place in the queue.
When the time has come: forewarm reservations claim. Who does not come loses the GPUs when the pool's warm hold is over.`

// newSingleReserveCommand is reserve without what makes it recur.
func (a *app) newSingleReserveCommand() *cobra.Command {
	return a.newBaseReserveCommand(&reserveFlags{})
}

func (a *app) newBaseReserveCommand(r *reserveFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   "reserve --gpus N (--pool P | --model M | --region R …) (--at TIME | --not-before TIME) --for DURATION",
		Short: "Have GPUs warm at a time",
		Long:  "Have GPUs warm at a time.\n\n" + reserveText,
		Args:  noArgs, Annotations: map[string]string{waits: "yes", "noun": "reservations"},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runReserve(cmd, *r) },
	}
	f := c.Flags()
	f.IntVar(&r.gpus, "gpus", 0, "how many")
	layoutFlags(f, &r.layout)
	f.StringVar(&r.model, "model", "", "GPU model, such as a100")
	f.StringVar(&r.pool, "pool", "", "id or name of a pool (default the cheapest that fits and can serve)")
	needsFlags(f, &r.needs)
	f.StringVar(&r.name, "name", "", "what to call it")
	f.StringVar(&r.at, "at", "", "start: 'tomorrow 09:00', 'mon 14:30', '2026-11-20 09:00', 'in 2h'")
	f.Var(&r.length, "for", "how long, such as 3h")
	f.StringVar(&r.zone, "tz", "", "time zone of --at, such as Europe/Berlin (default the machine's)")
	f.StringVar(&r.onFull, "on-full", "fail", "when there is no room: fail or queue")
	f.StringVar(&r.notBefore, "not-before", "",
		"instead of --at: the earliest start; the first time at which there is room is booked")
	f.StringVar(&r.notAfter, "not-after", "", "instead of --at, alone or with --not-before: the latest end")
	f.StringVar(&r.workload, "workload", "", "online or batch (default online)")
	f.StringVar(&r.class, "class", "", "guaranteed or speculative (default guaranteed)")
	return c
}

func (a *app) runReserve(cmd *cobra.Command, r reserveFlags) error {
	flexible := r.notBefore != "" || r.notAfter != ""
	if flexible && (r.at != "" || r.every != "") {
		return usageErrorf("forewarm reserve --help",
			"--not-before and --not-after are instead of --at, and not for --every")
	}
	if err := cmp.Or(needGPUs(cmd), needFlags(cmd, "for")); err != nil {
		return err
	}
	if !flexible {
		if err := needFlags(cmd, "at"); err != nil {
			return err
		}
	}
	if r.onFull != "fail" && r.onFull != "queue" {
		return usageErrorf("forewarm reserve --help", "--on-full %q is neither fail nor queue", r.onFull)
	}
	zone, err := a.findZone(cmd, r.zone)
	if err != nil {
		return err
	}
	if flexible {
		return a.reserveWithin(cmd, r, zone)
	}
	start, err := parseMoment(r.at, a.clock.Now(), zone)
	if err != nil {
		return blameFlag(cmd, "at", err)
	}
	if r.every != "" {
		if a.flags.wait {
			e := usageErrorf(typedLine(cmd, "wait", "timeout"),
				"--wait is not for --every: each date of a schedule has a reservation of its own")
			e.Detail = []string{"Leave --wait out, and wait for the reservation of a date: forewarm wait RESERVATION"}
			return e
		}
		return a.reserveAgain(cmd, r, start, zone)
	}
	for _, flag := range []string{"skip", "dst"} {
		if cmd.Flags().Changed(flag) {
			return usageErrorf("forewarm reserve --help", "--%s is only for --every", flag)
		}
	}
	return a.reserveOnce(cmd, r, start, zone)
}

func (a *app) reserveOnce(cmd *cobra.Command, r reserveFlags, start moment, zone *time.Location) error {
	end := start.at.Add(r.length.std())
	a.say(cmd, "Read as   %s", describeWindow(start.at, end, zone))
	a.sayNote(cmd, start.foldWarning(zone))
	in := r.buildRequest()
	in.Start, in.End = start.at.UTC(), end.UTC()
	return a.bookReservation(cmd, in)
}

// reserveWithin books the earliest time at which there is room.
func (a *app) reserveWithin(cmd *cobra.Command, r reserveFlags, zone *time.Location) error {
	in := r.buildRequest()
	in.MinDurationSeconds, in.MaxDurationSeconds = r.length.seconds(), r.length.seconds()
	in.StartTimeNotEarlierThan = a.clock.Now().UTC()
	for _, bound := range []struct {
		flag, text string
		to         *time.Time
	}{{"not-before", r.notBefore, &in.StartTimeNotEarlierThan}, {"not-after", r.notAfter, &in.EndTimeNotLaterThan}} {
		if bound.text == "" {
			continue
		}
		t, err := parseTime(bound.text, a.clock.Now(), zone)
		if err != nil {
			return blameFlag(cmd, bound.flag, err)
		}
		*bound.to = t.UTC()
	}
	a.say(cmd, "Read as   %s", describeBounds(in.StartTimeNotEarlierThan, in.EndTimeNotLaterThan, zone))
	return a.bookReservation(cmd, in)
}

// buildRequest is what the flags ask for, without its time.
func (r reserveFlags) buildRequest() contract.ReservationCreate {
	return contract.ReservationCreate{Pool: r.pool, Model: r.model, Needs: r.needs, GPUs: r.gpus, Layout: r.layout,
		Class: r.class, Name: r.name, Workload: r.workload,
		Queue: r.onFull == "queue"}
}

func (a *app) bookReservation(cmd *cobra.Command, in contract.ReservationCreate) error {
	api, err := a.newClient()
	if err != nil {
		return err
	}
	switch {
	case a.planning:
		return a.makePlan(cmd, api, contract.PlanReserve, in)
	case a.asking:
		return a.askAbout(cmd, api, contract.ExplainRequest{Reservation: &in})
	}
	got, err := api.Reserve(a.withIdempotencyKey(cmd.Context()), in, client.Options{DryRun: a.flags.dryRun})
	if err != nil {
		return err
	}
	if a.flags.dryRun {
		a.say(cmd, "Dry run: nothing was changed.")
		return showOne(a, cmd, reservationView, got)
	}
	if a.flags.wait {
		if got, err = a.waitReservation(cmd, api, got); err != nil {
			return err
		}
	}
	if err := showOne(a, cmd, reservationView, got); err != nil {
		return err
	}
	next := "reservations claim"
	if got.State == string(reservation.Waitlisted) {
		next = "explain"
	}
	a.say(cmd, "Next:  forewarm %s %s  ·  forewarm reservations cancel %s", next, got.ID, got.ID)
	return nil
}

func (a *app) reserveAgain(cmd *cobra.Command, r reserveFlags, start moment, zone *time.Location) error {
	in, err := r.buildSchedule(cmd, start, zone)
	if err != nil {
		return err
	}
	if _, err := recurrence.Parse(recurrence.Spec{StartLocal: in.StartLocal, Timezone: in.Timezone, RRule: in.RRule,
		ExDates: in.ExDates,
		Length:  r.length.std(), Policy: recurrence.Policy(in.DSTPolicy)}); err != nil {
		return wrongRule(cmd, err)
	}
	a.say(cmd, "Read as   %s at %s for %s, %s", in.RRule, start.wall.Format("15:04"), formatDuration(r.length.std()),
		in.Timezone)
	a.sayNote(cmd, start.foldWarning(zone))
	api, err := a.newClient()
	if err != nil {
		return err
	}
	pool, err := api.Pool(cmd.Context(), r.pool)
	if err != nil {
		return err
	}
	a.say(cmd, "Warm-up   about %s before each start (p95 of %s, and a margin)",
		formatDuration(time.Duration(pool.LeadSeconds*float64(time.Second))), formatCount(pool.BootSamples, "boot"))
	got, err := api.CreateSchedule(a.withIdempotencyKey(cmd.Context()), in, client.Options{DryRun: a.flags.dryRun})
	if err != nil {
		return err
	}
	if a.flags.dryRun {
		a.say(cmd, "Dry run: nothing was changed.")
		for i := range got.Next { // it belongs to nothing
			got.Next[i].ReservationID = ""
		}
	}
	if err := showOne(a, cmd, scheduleView, got); err != nil {
		return err
	}
	a.sayCost(cmd, got)
	a.sayDates(cmd, got.Next)
	if !a.flags.dryRun {
		a.say(cmd, "Next:  forewarm schedules show %s  ·  forewarm schedules pause %s", got.ID, got.ID)
	}
	return nil
}

// sayNote says what somebody should know; nothing when that is empty.
func (a *app) sayNote(cmd *cobra.Command, text string) {
	if text != "" {
		a.say(cmd, "Note      %s", text)
	}
}

// buildSchedule is the request for a recurring reservation.
func (r reserveFlags) buildSchedule(cmd *cobra.Command, start moment, zone *time.Location) (contract.ScheduleCreate, error) {
	rule, err := parseEvery(r.every)
	if err != nil {
		return contract.ScheduleCreate{}, err
	}
	switch {
	case r.pool == "":
		return contract.ScheduleCreate{}, usageErrorf("forewarm pools list",
			"--every needs --pool: a schedule belongs to one pool")
	case r.model != "" || r.needs != (contract.Needs{}):
		return contract.ScheduleCreate{}, usageErrorf("forewarm reserve --help",
			"--every goes with --pool alone: a schedule belongs to one pool")
	case r.name == "":
		return contract.ScheduleCreate{}, usageErrorf(commandWith(cmd, "--name NAME"),
			"--every needs --name: a schedule is known by its name")
	case r.class != "" || r.onFull != "fail":
		return contract.ScheduleCreate{}, usageErrorf("forewarm reserve --help",
			"--class and --on-full are not for --every: what a schedule books is guaranteed")
	}
	return contract.ScheduleCreate{Pool: r.pool, Name: r.name, GPUs: r.gpus, Layout: r.layout,
			StartLocal: start.wall.Format("2006-01-02T15:04:05"),
			Timezone:   zone.String(), RRule: rule, ExDates: r.skip, DurationSeconds: r.length.seconds(), DSTPolicy: r.dst},
		nil
}

func wrongRule(cmd *cobra.Command, err error) error {
	var e *recurrence.Error
	if !errors.As(err, &e) {
		return err
	}
	u := usageErrorf("forewarm reserve --help", "%s", fieldText(cmd,
		contract.FieldError{Pointer: "/" + e.Field, Message: e.Rule}))
	if e.Fix != "" && !strings.Contains(e.Rule, e.Fix) {
		u.Detail = []string{"Such as " + e.Fix}
	}
	return u
}

// commandWith is the command line that was typed, with more flags.
func commandWith(cmd *cobra.Command, more string) string {
	return fmt.Sprintf("%s … %s", cmd.CommandPath(), more)
}
