package reservations

import (
	"cmp"
	"strconv"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// View shows reservations.
var View = output.View[contract.Reservation]{
	Name: func(x contract.Reservation) string { return x.ID },
	Order: func(x, y contract.Reservation) int { // the newest first; what a schedule made at once, by its time
		return cmp.Or(y.CreatedAt.Compare(x.CreatedAt), x.Start.Compare(y.Start))
	},
	Columns: []output.Column[contract.Reservation]{
		{Head: "ID", Cell: func(x contract.Reservation) string { return x.ID }},
		{Head: "NAME", Cell: func(x contract.Reservation) string { return format.OrDash(x.Name) }},
		{Head: "STATE", Cell: reservationState},
		{Head: "CLASS", Cell: func(x contract.Reservation) string { return x.Class }},
		{Head: "GPUS", Right: true, Cell: func(x contract.Reservation) string { return strconv.Itoa(x.GPUs) }},
		{Head: "START", Cell: func(x contract.Reservation) string { return format.Time(x.Start) }},
		{Head: "END", Cell: func(x contract.Reservation) string { return format.Time(x.End) }},
		{Head: "COST", Right: true, Cell: func(x contract.Reservation) string { return format.Money(x.Cost) }},
		{Head: "BY", Cell: func(x contract.Reservation) string { return cmp.Or(x.MadeByName, x.Origin) }, Wide: true},
		{Head: "ORGANIZATION",
			Cell: func(x contract.Reservation) string { return cmp.Or(x.OrganizationName, x.OrganizationID) },
			Wide: true},
		{Head: "POOL", Cell: func(x contract.Reservation) string { return cmp.Or(x.PoolName, x.PoolID) }},
		{Head: "FOR JOBS", Cell: func(x contract.Reservation) string { return format.OrDash(x.ForJobs) }, Wide: true},
		{Head: "JOB", Cell: func(x contract.Reservation) string { return format.OrDash(x.JobID) }, Wide: true},
		{Head: "PART OF", Cell: func(x contract.Reservation) string { return format.OrDash(x.PartOf) }, Wide: true},
		{Head: "WHY", Cell: func(x contract.Reservation) string { return format.OrDash(x.ReasonCode) }, Wide: true},
		{Head: "READY", Cell: func(x contract.Reservation) string { return format.Time(x.ReadyAt) }, Wide: true},
		{Head: "REASON", Cell: func(x contract.Reservation) string { return format.OrDash(x.Reason) }, Wide: true},
	},
}

func reservationState(x contract.Reservation) string {
	if x.Degraded {
		return x.State + " (degraded)"
	}
	return x.State
}
