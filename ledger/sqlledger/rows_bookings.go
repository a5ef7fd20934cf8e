package sqlledger

import (
	"errors"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

type reservationRow struct {
	Head           rowHead `gorm:"embedded"`
	OrganizationID string  `gorm:"column:organization_id"`
	PoolID         string  `gorm:"column:pool_id"`
	Name           string  `gorm:"column:name"`
	Class          string  `gorm:"column:class"`
	Origin         string  `gorm:"column:origin"`
	MadeBy         string  `gorm:"column:made_by"`
	UserID         string  `gorm:"column:user_id"`
	Workload       string  `gorm:"column:workload"`
	Start          int64   `gorm:"column:window_start"`
	End            int64   `gorm:"column:window_end"`
	Nodes          int     `gorm:"column:nodes"`
	PerNode        int     `gorm:"column:per_node"`
	Short          int     `gorm:"column:short"`
	Slots          string  `gorm:"column:slots"`
	ForJobs        string  `gorm:"column:for_jobs"`
	JobID          string  `gorm:"column:job_id"`
	PartOf         string  `gorm:"column:part_of"`
	Awaits         string  `gorm:"column:awaits"`
	ReasonCode     string  `gorm:"column:reason_code"`
	Probability    float64 `gorm:"column:probability"`
	Degraded       bool    `gorm:"column:degraded"`
	Reason         string  `gorm:"column:reason"`
	Cost           int64   `gorm:"column:cost"`
	State          string  `gorm:"column:state"`
	Created        int64   `gorm:"column:created_at"`
	Booked         int64   `gorm:"column:booked_at"`
	Warmed         int64   `gorm:"column:warmed_at"`
	Ready          int64   `gorm:"column:ready_at"`
	Ended          int64   `gorm:"column:ended_at"`
}

func (reservationRow) TableName() string  { return "reservations" }
func (r reservationRow) rowHead() rowHead { return r.Head }

func reservationToRow(r reservation.Reservation) reservationRow {
	return reservationRow{
		Head: nextVersion(r.ID, r.Version), OrganizationID: r.OrganizationID, PoolID: r.PoolID, Name: r.Name,
		Class: string(r.Class), Origin: string(r.Origin), MadeBy: r.MadeBy, UserID: r.UserID,
		Workload: string(r.Workload), Start: toMicros(r.Window.Start), End: toMicros(r.Window.End),
		Nodes: r.Shape.Nodes, PerNode: r.Shape.PerNode, Short: r.Shape.Short, Slots: packList(r.Slots),
		ForJobs: string(r.ForJobs), JobID: r.JobID, PartOf: r.PartOf, Awaits: r.Awaits,
		ReasonCode: r.ReasonCode, Probability: r.Probability, Degraded: r.Degraded, Reason: r.Reason,
		Cost:  int64(r.Cost),
		State: string(r.State()), Created: toMicros(r.CreatedAt), Booked: toMicros(r.BookedAt),
		Warmed: toMicros(r.WarmedAt), Ready: toMicros(r.ReadyAt), Ended: toMicros(r.EndedAt),
	}
}

func (r reservationRow) toValue() (reservation.Reservation, error) {
	slots, err := unpackList[int]("slots", r.Slots)
	if err != nil {
		return reservation.Reservation{}, err
	}
	return reservation.Restore(reservation.Reservation{
		ID: r.Head.ID, OrganizationID: r.OrganizationID, PoolID: r.PoolID, Name: r.Name,
		Class: reservation.Class(r.Class), Origin: reservation.Origin(r.Origin), MadeBy: r.MadeBy, UserID: r.UserID,
		Workload: capacity.Workload(r.Workload),
		Window:   calendar.Interval{Start: toTime(r.Start), End: toTime(r.End)},
		Shape:    capacity.Shape{Nodes: r.Nodes, PerNode: r.PerNode, Short: r.Short}, Slots: slots,
		ForJobs: reservation.ForJobs(r.ForJobs), JobID: r.JobID, PartOf: r.PartOf, Awaits: r.Awaits,
		ReasonCode: r.ReasonCode, Probability: r.Probability, Degraded: r.Degraded, Reason: r.Reason,
		Cost:      money.MicroUSD(r.Cost),
		CreatedAt: toTime(r.Created), BookedAt: toTime(r.Booked), WarmedAt: toTime(r.Warmed), ReadyAt: toTime(r.Ready),
		EndedAt: toTime(r.Ended), Version: r.Head.Version,
	}, reservation.State(r.State))
}

type allocationRow struct {
	Head           rowHead `gorm:"embedded"`
	OrganizationID string  `gorm:"column:organization_id"`
	PoolID         string  `gorm:"column:pool_id"`
	Name           string  `gorm:"column:name"`
	HeldBy         string  `gorm:"column:held_by"`
	UserID         string  `gorm:"column:user_id"`
	Workload       string  `gorm:"column:workload"`
	Nodes          int     `gorm:"column:nodes"`
	PerNode        int     `gorm:"column:per_node"`
	Short          int     `gorm:"column:short"`
	Slots          string  `gorm:"column:slots"`
	Reservations   string  `gorm:"column:reservations"`
	Opened         string  `gorm:"column:opened"`
	Lease          int64   `gorm:"column:lease"`
	Start          int64   `gorm:"column:window_start"`
	End            int64   `gorm:"column:window_end"`
	Reason         string  `gorm:"column:reason"`
	State          string  `gorm:"column:state"`
	Requested      int64   `gorm:"column:requested_at"`
	Active         int64   `gorm:"column:active_at"`
	LeaseUntil     int64   `gorm:"column:lease_until"`
	Ended          int64   `gorm:"column:ended_at"`
	IdleWarned     int64   `gorm:"column:idle_warned_at"`
	Cost           int64   `gorm:"column:cost"`
	Work           string  `gorm:"column:work"`
	WorkAccount    string  `gorm:"column:work_account"`
	WorkUser       string  `gorm:"column:work_user"`
	WorkNamespace  string  `gorm:"column:work_namespace"`
	WorkQueue      string  `gorm:"column:work_queue"`
	Queued         int64   `gorm:"column:queued_at"`
	WaitedFor      string  `gorm:"column:waited_for"`
	JobID          string  `gorm:"column:job_id"`
	Apart          string  `gorm:"column:apart"`
}

func (allocationRow) TableName() string  { return "allocations" }
func (r allocationRow) rowHead() rowHead { return r.Head }

func allocationToRow(a allocation.Allocation) allocationRow {
	return allocationRow{
		Head: nextVersion(a.ID, a.Version), OrganizationID: a.OrganizationID, PoolID: a.PoolID, Name: a.Name,
		HeldBy: a.HeldBy, UserID: a.UserID, Workload: string(a.Workload), Nodes: a.Shape.Nodes,
		PerNode: a.Shape.PerNode, Short: a.Shape.Short, Slots: packList(a.Slots),
		Reservations: packList(a.Reservations), Opened: packList(a.Opened), Lease: a.Lease.Microseconds(),
		Start: toMicros(a.Window.Start), End: toMicros(a.Window.End), Reason: a.Reason,
		State: string(a.State()), Requested: toMicros(a.RequestedAt), Active: toMicros(a.ActiveAt),
		LeaseUntil: toMicros(a.LeaseUntil), Ended: toMicros(a.EndedAt), Cost: int64(a.Cost),
		IdleWarned: toMicros(a.IdleWarnedAt),
		Work:       a.Work.ID, WorkAccount: a.Work.Account, WorkUser: a.Work.User, WorkNamespace: a.Work.Namespace,
		WorkQueue: a.Work.Queue, Queued: toMicros(a.Work.QueuedAt), WaitedFor: a.Work.WaitedFor,
		JobID: a.JobID, Apart: packList(a.Apart),
	}
}

// toValue returns the allocation without its devices, which are rows of their own.
func (r allocationRow) toValue() (allocation.Allocation, error) {
	slots, err1 := unpackList[int]("slots", r.Slots)
	claimed, err2 := unpackList[string]("reservations", r.Reservations)
	opened, err3 := unpackList[string]("opened", r.Opened)
	apart, err4 := unpackList[string]("apart", r.Apart)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return allocation.Allocation{}, err
	}
	return allocation.Restore(allocation.Allocation{
		ID: r.Head.ID, OrganizationID: r.OrganizationID, PoolID: r.PoolID, Name: r.Name, HeldBy: r.HeldBy,
		UserID: r.UserID, Workload: capacity.Workload(r.Workload),
		Shape: capacity.Shape{Nodes: r.Nodes, PerNode: r.PerNode, Short: r.Short}, Slots: slots, Reservations: claimed,
		Opened: opened, JobID: r.JobID, Apart: apart,
		Lease: toDuration(r.Lease), Window: calendar.Interval{Start: toTime(r.Start), End: toTime(r.End)},
		Reason: r.Reason, RequestedAt: toTime(r.Requested), ActiveAt: toTime(r.Active),
		LeaseUntil: toTime(r.LeaseUntil), EndedAt: toTime(r.Ended), Cost: money.MicroUSD(r.Cost),
		IdleWarnedAt: toTime(r.IdleWarned), Version: r.Head.Version,
		Work: allocation.Work{ID: r.Work, WorkOwner: capacity.WorkOwner{Account: r.WorkAccount, User: r.WorkUser,
			Namespace: r.WorkNamespace, Queue: r.WorkQueue}, QueuedAt: toTime(r.Queued), WaitedFor: r.WaitedFor},
	}, allocation.State(r.State))
}

// holdRow is one GPU that an allocation holds now (Until is nil) or once held.
type holdRow struct {
	AllocationID string `gorm:"column:allocation_id;primaryKey"`
	NodeID       string `gorm:"column:node_id"`
	UUID         string `gorm:"column:gpu_uuid;primaryKey"`
	Index        int    `gorm:"column:idx"`
	Since        int64  `gorm:"column:since"`
	Until        *int64 `gorm:"column:until"`
}

func (holdRow) TableName() string { return "allocation_gpus" }

type scheduleRow struct {
	Head           rowHead `gorm:"embedded"`
	OrganizationID string  `gorm:"column:organization_id"`
	PoolID         string  `gorm:"column:pool_id"`
	Name           string  `gorm:"column:name"`
	GPUs           int     `gorm:"column:gpus"`
	Nodes          int     `gorm:"column:nodes"`
	PerNode        int     `gorm:"column:per_node"`
	Even           bool    `gorm:"column:even"`
	StartLocal     string  `gorm:"column:start_local"`
	Timezone       string  `gorm:"column:timezone"`
	RRule          string  `gorm:"column:rrule"`
	ExDates        string  `gorm:"column:ex_dates"`
	Length         int64   `gorm:"column:length"`
	DSTPolicy      string  `gorm:"column:dst_policy"`
	Paused         bool    `gorm:"column:paused"`
	MadeBy         string  `gorm:"column:made_by"`
	Created        int64   `gorm:"column:created_at"`
	DoneUntil      int64   `gorm:"column:done_until"`
	Deleted        int64   `gorm:"column:deleted_at"`
}

func (scheduleRow) TableName() string  { return "schedules" }
func (r scheduleRow) rowHead() rowHead { return r.Head }

func scheduleToRow(s ledger.Schedule) scheduleRow {
	return scheduleRow{
		Head: nextVersion(s.ID, s.Version), OrganizationID: s.OrganizationID, PoolID: s.PoolID, Name: s.Name,
		GPUs: s.GPUs, Nodes: s.Layout.Nodes, PerNode: s.Layout.PerNode, Even: s.Layout.Even, StartLocal: s.StartLocal,
		Timezone: s.Timezone, RRule: s.RRule,
		ExDates: packList(s.ExDates), Length: s.Length.Microseconds(), DSTPolicy: s.DSTPolicy,
		Paused: s.Paused, MadeBy: s.MadeBy, Created: toMicros(s.CreatedAt), DoneUntil: toMicros(s.DoneUntil),
		Deleted: toMicros(s.DeletedAt),
	}
}

func (r scheduleRow) toValue() (ledger.Schedule, error) {
	skipped, err := unpackList[string]("ex_dates", r.ExDates)
	return ledger.Schedule{
		ID: r.Head.ID, OrganizationID: r.OrganizationID, PoolID: r.PoolID, Name: r.Name, GPUs: r.GPUs,
		Layout:     capacity.Layout{Nodes: r.Nodes, PerNode: r.PerNode, Even: r.Even},
		StartLocal: r.StartLocal, Timezone: r.Timezone, RRule: r.RRule, ExDates: skipped,
		Length: toDuration(r.Length), DSTPolicy: r.DSTPolicy, Paused: r.Paused, MadeBy: r.MadeBy,
		CreatedAt: toTime(r.Created), DoneUntil: toTime(r.DoneUntil),
		DeletedAt: toTime(r.Deleted), Version: r.Head.Version,
	}, err
}
