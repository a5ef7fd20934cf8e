package cli

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var reservationView = view[contract.Reservation]{
	name: func(x contract.Reservation) string { return x.ID },
	order: func(x, y contract.Reservation) int { // the newest first; what a schedule made at once, by its time
		return cmp.Or(y.CreatedAt.Compare(x.CreatedAt), x.Start.Compare(y.Start))
	},
	columns: []column[contract.Reservation]{
		{head: "ID", cell: func(x contract.Reservation) string { return x.ID }},
		{head: "NAME", cell: func(x contract.Reservation) string { return orDash(x.Name) }},
		{head: "STATE", cell: reservationState},
		{head: "CLASS", cell: func(x contract.Reservation) string { return x.Class }},
		{head: "GPUS", right: true, cell: func(x contract.Reservation) string { return strconv.Itoa(x.GPUs) }},
		{head: "START", cell: func(x contract.Reservation) string { return formatTime(x.Start) }},
		{head: "END", cell: func(x contract.Reservation) string { return formatTime(x.End) }},
		{head: "COST", right: true, cell: func(x contract.Reservation) string { return formatMoney(x.Cost) }},
		{head: "BY", cell: func(x contract.Reservation) string { return firstNonEmpty(x.MadeByName, x.Origin) }, wide: true},
		{head: "ORGANIZATION",
			cell: func(x contract.Reservation) string { return firstNonEmpty(x.OrganizationName, x.OrganizationID) },
			wide: true},
		{head: "POOL", cell: func(x contract.Reservation) string { return firstNonEmpty(x.PoolName, x.PoolID) }},
		{head: "WHY", cell: func(x contract.Reservation) string { return orDash(x.ReasonCode) }, wide: true},
		{head: "READY", cell: func(x contract.Reservation) string { return formatTime(x.ReadyAt) }, wide: true},
		{head: "REASON", cell: func(x contract.Reservation) string { return orDash(x.Reason) }, wide: true},
	},
}

func reservationState(x contract.Reservation) string {
	if x.Degraded {
		return x.State + " (degraded)"
	}
	return x.State
}

func (a *app) newReservationsCommand() *cobra.Command {
	return newGroupCommand("reservations", "See and use what is promised",
		newListBookingsCommand(a, "reservations", reservationView, (*client.Client).Reservations), a.newShowReservationCommand(),
		a.newCancelReservationCommand(), a.newClaimReservationCommand())
}

func (a *app) newShowReservationCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show RESERVATION", Short: "Show one reservation", Args: exactArgs("RESERVATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.reservationID(cmd, args[0])
			if err != nil {
				return err
			}
			got, err := api.Reservation(cmd.Context(), id)
			if err != nil {
				return err
			}
			return showOne(a, cmd, reservationView, got)
		},
	}
}

func (a *app) newCancelReservationCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel RESERVATION", Short: "Give a promise back", Args: exactArgs("RESERVATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.reservationID(cmd, args[0])
			if err != nil {
				return err
			}
			if a.previewsOnly() {
				return a.makePlan(cmd, api, contract.PlanCancel, contract.PlannedCancel{ReservationID: id})
			}
			got, err := api.CancelReservation(a.withIdempotencyKey(cmd.Context()), id)
			if err != nil {
				return err
			}
			return showOne(a, cmd, reservationView, got)
		},
	}
}

func (a *app) newClaimReservationCommand() *cobra.Command {
	var lease span
	var in contract.Claim
	c := &cobra.Command{
		Use: "claim RESERVATION", Short: "Turn a promise into GPUs held now", Args: exactArgs("RESERVATION"),
		Long: `Turn a promise into GPUs held now, from the pool's lead (the 95th percentile of its boots, and a guard) before the window on.

The lease ends with the window. It may be shorter, or as long as the window; for more, extend it.`,
		Annotations: map[string]string{waits: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			in.LeaseSeconds = lease.seconds()
			api, id, err := a.reservationID(cmd, args[0])
			if err != nil {
				return err
			}
			if a.previewsOnly() {
				return a.makePlan(cmd, api, contract.PlanClaim, contract.PlannedClaim{ReservationID: id, Claim: in})
			}
			if err := a.agreeToCost(cmd, args, func(ctx context.Context) (contract.Allocation, error) {
				return api.Claim(ctx, id, in, client.Options{DryRun: true})
			}); err != nil {
				return err
			}
			got, err := api.Claim(a.withIdempotencyKey(cmd.Context()), id, in, client.Options{})
			if err != nil {
				return err
			}
			return a.showAllocated(cmd, api, got)
		},
	}
	c.Flags().Var(&lease, "for", "length of the lease (default to the end of the window)")
	c.Flags().StringVar(&in.Name, "name", "", "what to call it (default as the reservation)")
	return c
}
