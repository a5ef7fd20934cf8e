package contract

import "time"

// Limits are what an organization may hold and use. A limit that is absent is
// none; max_gpus and speculation_per_day at zero allow nothing.
type Limits struct {
	MaxGPUs           int    `json:"max_gpus" minimum:"0" maximum:"1000000"`
	SpeculationPerDay Money  `json:"speculation_per_day"`
	MaxGPUMemoryMiB   *int64 `json:"max_gpu_memory_mib,omitempty" minimum:"0" maximum:"1000000000000"`
	MaxCPUs           *int64 `json:"max_cpus,omitempty" minimum:"0" maximum:"1000000000" nullable:"false"`
	MaxMemoryMiB      *int64 `json:"max_memory_mib,omitempty" minimum:"0" maximum:"1000000000000" nullable:"false"`
	MaxBookings       *int64 `json:"max_bookings,omitempty" minimum:"0" maximum:"1000000000" nullable:"false"`
	Cohort            string `json:"cohort,omitempty" maxLength:"63" pattern:"^[a-z0-9][a-z0-9-]*$"`
	Borrowing         Bounds `json:"borrowing,omitzero"`
	Lending           Bounds `json:"lending,omitzero" doc:"How much of its own limits the cohort may use; absent: all."`
	Period            string `json:"period,omitempty" enum:"day,month" default:"day"`
	GPUHours          *int64 `json:"gpu_hours,omitempty" minimum:"0" maximum:"1000000000" nullable:"false"`
	Money             *Money `json:"money,omitempty" nullable:"false" doc:"In one period."`
	Weight            int    `json:"weight,omitempty" minimum:"1" maximum:"1000" default:"1" doc:"Of its fair share."`
}

// Bounds are a limit of each resource; what is absent has none.
type Bounds struct {
	GPUs         *int64 `json:"gpus,omitempty" minimum:"0" maximum:"1000000000000" nullable:"false"`
	GPUMemoryMiB *int64 `json:"gpu_memory_mib,omitempty" minimum:"0" maximum:"1000000000000" nullable:"false"`
	CPUs         *int64 `json:"cpus,omitempty" minimum:"0" maximum:"1000000000000" nullable:"false"`
	MemoryMiB    *int64 `json:"memory_mib,omitempty" minimum:"0" maximum:"1000000000000" nullable:"false"`
	Bookings     *int64 `json:"bookings,omitempty" minimum:"0" maximum:"1000000000000" nullable:"false"`
}

// Quota is an organization's limits. The version is the organization's, which
// is also the ETag.
type Quota struct {
	OrganizationID   string `json:"organization_id"`
	OrganizationName string `json:"organization_name,omitempty"`
	Limits           Limits `json:"limits"`
	Version          int    `json:"version"`
}

// QuotaChanged answers a change of limits. With force it says which promises it
// broke, and it always says which it mended.
type QuotaChanged struct {
	Quota    Quota           `json:"quota"`
	Degraded []PromiseAtRisk `json:"degraded" nullable:"false"`
	Restored []string        `json:"restored" nullable:"false"`
}

// PromiseAtRisk is a booking that new limits do not allow, or that a smaller pool
// has no place for.
type PromiseAtRisk struct {
	ID               string    `json:"id" doc:"Of a reservation or an allocation."`
	OrganizationID   string    `json:"organization_id"`
	OrganizationName string    `json:"organization_name,omitempty"`
	PoolID           string    `json:"pool_id"`
	PoolName         string    `json:"pool_name,omitempty"`
	GPUs             int       `json:"gpus"`
	Start            time.Time `json:"start"`
	End              time.Time `json:"end"`
	Blockers         []Blocker `json:"blockers" nullable:"false" doc:"The limits that it is beyond."`
}

// ResourceUsage is what is held and promised of one resource, and what may be.
type ResourceUsage struct {
	Resource string `json:"resource" enum:"gpus,gpu_memory_mib,cpus,memory_mib,bookings"`
	Now      int64  `json:"now"`
	Peak     int64  `json:"peak" doc:"The most at any one instant from now to until."`
	Limit    *int64 `json:"limit,omitempty" doc:"The organization's own; absent: none."`
	Ceiling  *int64 `json:"ceiling,omitempty" doc:"With what it may borrow from its cohort; absent: none."`
}

// PeriodUsage is what starts in the present period.
type PeriodUsage struct {
	Period        string    `json:"period" enum:"day,month"`
	Start         time.Time `json:"start"`
	End           time.Time `json:"end"`
	GPUHours      float64   `json:"gpu_hours"`
	GPUHoursLimit *int64    `json:"gpu_hours_limit,omitempty"`
	Money         Money     `json:"money"`
	MoneyLimit    *Money    `json:"money_limit,omitempty"`
}

// QuotaUsage is what an organization holds, is promised and has used.
type QuotaUsage struct {
	OrganizationID   string          `json:"organization_id"`
	OrganizationName string          `json:"organization_name,omitempty"`
	At               time.Time       `json:"at"`
	Until            time.Time       `json:"until"`
	Resources        []ResourceUsage `json:"resources" nullable:"false"`
	Period           PeriodUsage     `json:"period"`
	Speculation      Money           `json:"speculation"`
	SpeculationLimit Money           `json:"speculation_limit"`
}

// quotaTags are the rests of tags that are too long for their lines.
var quotaTags = tags{
	"Limits.MaxGPUs":           `doc:"GPUs held and promised at any one instant."`,
	"Limits.SpeculationPerDay": `doc:"Cost of speculative reservations that start in one UTC day."`,
	"Limits.MaxGPUMemoryMiB":   `nullable:"false" doc:"At any one instant, like the next three."`,
	"Limits.MaxBookings":       `doc:"Reservations and allocations."`,
	"Limits.Cohort": `patternDescription:"lower-case letters, digits and hyphens, a letter or digit first" ` +
		`doc:"Organizations of one cohort lend each other what they do not use."`,
	"Limits.Borrowing": `doc:"How far beyond its own limits it may go in its cohort; absent: as far as the others ` +
		`lend."`,
	"Limits.Period": `doc:"The period of gpu_hours and money: the UTC day or month in which a booking starts. Its ` +
		`extensions also count there."`,
	"Limits.GPUHours":        `doc:"In one period."`,
	"QuotaChanged.Degraded":  `doc:"Promises beyond the new limits: kept, and marked degraded."`,
	"QuotaChanged.Restored":  `doc:"Reservations that were beyond the limits and no longer are."`,
	"QuotaUsage.Speculation": `doc:"Cost of the speculative reservations that start on this UTC day."`,
}
