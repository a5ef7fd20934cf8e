package contract

import "time"

// Schedule makes reservations again and again.
type Schedule struct {
	ID               string    `json:"id"`
	OrganizationID   string    `json:"organization_id"`
	OrganizationName string    `json:"organization_name,omitempty"`
	PoolID           string    `json:"pool_id"`
	PoolName         string    `json:"pool_name,omitempty"`
	Name             string    `json:"name,omitempty"`
	GPUs             int       `json:"gpus"`
	Nodes            int       `json:"nodes,omitempty" doc:"As it was asked for."`
	GPUsPerNode      int       `json:"gpus_per_node,omitempty"`
	Spread           string    `json:"spread,omitempty" enum:"even"`
	StartLocal       string    `json:"start_local"`
	Timezone         string    `json:"timezone"`
	RRule            string    `json:"rrule"`
	ExDates          []string  `json:"exdates" nullable:"false"`
	DurationSeconds  int64     `json:"duration_seconds"`
	DSTPolicy        string    `json:"dst_policy" enum:"shift,skip"`
	Paused           bool      `json:"paused"`
	MadeBy           string    `json:"made_by"`
	MadeByName       string    `json:"made_by_name,omitempty" doc:"Of the key or schedule."`
	CreatedAt        time.Time `json:"created_at"`
	DoneUntil        time.Time `json:"done_until,omitzero" doc:"Occurrences before this have their reservations."`
	Version          int       `json:"version"`
	// Next is only in the answer to its creation.
	Next []Occurrence `json:"next,omitempty" doc:"In the answer to its creation: its next dates and the results."`
	// Cost and Remarks are there too.
	Cost    *Money   `json:"cost,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
	// Cancelled is only in the answer to its deletion.
	Cancelled *int `json:"cancelled,omitempty" doc:"After a deletion: how many of its reservations were cancelled."`
}

// ScheduleCreate asks for a schedule.
type ScheduleCreate struct {
	Pool string `json:"pool" minLength:"1" maxLength:"63" doc:"Id or name."`
	Name string `json:"name" minLength:"1" maxLength:"63"`
	GPUs int    `json:"gpus,omitempty" minimum:"1" maximum:"100000" doc:"May be left out with nodes and gpus_per_node."`
	Layout
	StartLocal      string   `json:"start_local" maxLength:"19" example:"2026-11-20T09:00:00"`
	Timezone        string   `json:"timezone" maxLength:"64" example:"Europe/Berlin" doc:"IANA name."`
	RRule           string   `json:"rrule" maxLength:"256" example:"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"`
	ExDates         []string `json:"exdates,omitempty" maxItems:"366" nullable:"false"`
	DurationSeconds int64    `json:"duration_seconds" minimum:"1" maximum:"2678400"`
	DSTPolicy       string   `json:"dst_policy,omitempty" enum:"shift,skip" default:"shift"`
}

// Occurrence is one date of a schedule, and what became of it.
type Occurrence struct {
	Start         time.Time `json:"start"`
	End           time.Time `json:"end"`
	LocalStart    string    `json:"local_start" doc:"With its UTC offset."`
	State         string    `json:"state"`
	ReservationID string    `json:"reservation_id,omitempty"`
	Degraded      bool      `json:"degraded,omitempty"`
	Cost          *Money    `json:"cost,omitempty" doc:"Of its reservation."`
	Reason        string    `json:"reason,omitempty" doc:"A code; for a refused date, the blocker."`
	Message       string    `json:"message,omitempty" doc:"Why it was refused, for people."`
	AskedAt       time.Time `json:"asked_at,omitzero" doc:"Roughly when a coming date will be requested."`
}

// scheduleTags are the rests of tags that are too long for their lines.
var scheduleTags = tags{
	"Schedule.GPUsPerNode": `doc:"As it was asked for; the last node has the rest of gpus."`,
	"Schedule.Cost": `doc:"In the answer to its creation: the total of the dates that are booked. Later dates add ` +
		`to it."`,
	"Schedule.Remarks": `doc:"In the answer to its creation: remarks for people on what may be unintended, such as ` +
		`overlapping dates."`,
	"ScheduleCreate.StartLocal": `doc:"The first start, in local time."`,
	"ScheduleCreate.RRule":      `doc:"DAILY, WEEKLY or MONTHLY with INTERVAL, BYDAY, BYMONTHDAY, COUNT, UNTIL."`,
	"ScheduleCreate.ExDates":    `doc:"Local dates that are skipped, such as 2026-12-24."`,
	"ScheduleCreate.DSTPolicy": `doc:"What happens to a start that the change to daylight saving time skips: it ` +
		`moves forward by the gap, or is dropped. Of a time that occurs twice, the first counts."`,
	"Occurrence.State": `enum:"coming,paused,refused,missed,booked,waitlisted,warming,ready,claimed,cancelled,` +
		`expired,failed" doc:"State of its reservation. Without one: not requested yet (coming), not requested while ` +
		`the schedule is paused, refused, or never requested (missed)."`,
}
