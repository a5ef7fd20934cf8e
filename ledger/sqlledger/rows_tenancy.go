package sqlledger

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

type organizationRow struct {
	Head              rowHead `gorm:"embedded"`
	Name              string  `gorm:"column:name"`
	MaxGPUs           int     `gorm:"column:max_gpus"`
	SpeculationPerDay int64   `gorm:"column:speculation_per_day"`
	MaxGPUMemoryMiB   int64   `gorm:"column:max_gpu_memory_mib"`
	MaxCPUs           int64   `gorm:"column:max_cpus"`
	MaxMemoryMiB      int64   `gorm:"column:max_memory_mib"`
	MaxBookings       int64   `gorm:"column:max_bookings"`
	Cohort            string  `gorm:"column:cohort"`
	Borrowing         string  `gorm:"column:borrowing"`
	Lending           string  `gorm:"column:lending"`
	Period            string  `gorm:"column:period"`
	GPUHours          int64   `gorm:"column:gpu_hours"`
	Money             int64   `gorm:"column:money"`
	Weight            int     `gorm:"column:weight"`
	Created           int64   `gorm:"column:created_at"`
	Deleted           int64   `gorm:"column:deleted_at"`
}

func (organizationRow) TableName() string  { return "organizations" }
func (r organizationRow) rowHead() rowHead { return r.Head }

func organizationToRow(o ledger.Organization) organizationRow {
	l := o.Limits
	return organizationRow{
		Head: nextVersion(o.ID, o.Version), Name: o.Name,
		MaxGPUs: l.GPUs, SpeculationPerDay: int64(l.SpeculationPerDay),
		MaxGPUMemoryMiB: l.GPUMemoryMiB.Int64(), MaxCPUs: l.CPUs.Int64(), MaxMemoryMiB: l.MemoryMiB.Int64(),
		MaxBookings: l.Bookings.Int64(),
		Cohort:      l.Cohort, Borrowing: packBounds(l.Borrowing), Lending: packBounds(l.Lending),
		Period: string(cmp.Or(l.Period, quota.PerDay)), GPUHours: l.GPUHours.Int64(), Money: l.MoneyPerPeriod.Int64(),
		Weight:  cmp.Or(l.Weight, 1),
		Created: toMicros(o.CreatedAt), Deleted: toMicros(o.DeletedAt),
	}
}

func (r organizationRow) toValue() (ledger.Organization, error) {
	borrowing, err1 := unpackBounds("borrowing", r.Borrowing)
	lending, err2 := unpackBounds("lending", r.Lending)
	return ledger.Organization{
		ID: r.Head.ID, Name: r.Name,
		Limits: quota.Limits{
			GPUs: r.MaxGPUs, SpeculationPerDay: money.MicroUSD(r.SpeculationPerDay),
			GPUMemoryMiB: quota.AtMost(r.MaxGPUMemoryMiB), CPUs: quota.AtMost(r.MaxCPUs),
			MemoryMiB: quota.AtMost(r.MaxMemoryMiB), Bookings: quota.AtMost(r.MaxBookings),
			Cohort: r.Cohort, Borrowing: borrowing, Lending: lending,
			Period: quota.Period(r.Period), GPUHours: quota.AtMost(r.GPUHours), MoneyPerPeriod: quota.AtMost(r.Money),
			Weight: r.Weight,
		},
		CreatedAt: toTime(r.Created), DeletedAt: toTime(r.Deleted), Version: r.Head.Version,
	}, errors.Join(err1, err2)
}

// packBounds stores a limit for each resource, in the order of the resources.
func packBounds(b quota.Bounds) string {
	limits := make([]int64, len(b))
	for r, l := range b {
		limits[r] = l.Int64()
	}
	return packList(limits)
}

// unpackBounds is the reverse of packBounds.
func unpackBounds(column, text string) (quota.Bounds, error) {
	var b quota.Bounds
	limits, err := unpackList[int64](column, text)
	if err == nil && len(limits) != len(b) {
		err = fmt.Errorf("reading column %s: it holds %d limits and not %d", column, len(limits), len(b))
	}
	for r := range min(len(limits), len(b)) {
		b[r] = quota.AtMost(limits[r])
	}
	return b, err
}

type userRow struct {
	Head           rowHead `gorm:"embedded"`
	OrganizationID string  `gorm:"column:organization_id"`
	Email          string  `gorm:"column:email"`
	Role           string  `gorm:"column:role"`
	Active         bool    `gorm:"column:active"`
	CapGPUs        int     `gorm:"column:cap_gpus"`
	CapPerDay      int64   `gorm:"column:cap_per_day"`
	CapLead        int64   `gorm:"column:cap_lead"`
	CapWindow      int64   `gorm:"column:cap_window"`
	CapGPUHours    int64   `gorm:"column:cap_gpu_hours"`
	Created        int64   `gorm:"column:created_at"`
	Deleted        int64   `gorm:"column:deleted_at"`
}

func (userRow) TableName() string  { return "users" }
func (r userRow) rowHead() rowHead { return r.Head }

func userToRow(u ledger.User) userRow {
	return userRow{
		Head: nextVersion(u.ID, u.Version), OrganizationID: u.OrganizationID, Email: u.Email,
		Role: string(u.Role), Active: u.Active, Created: toMicros(u.CreatedAt), Deleted: toMicros(u.DeletedAt),
		CapGPUs: u.Caps.MaxGPUs, CapPerDay: int64(u.Caps.MaxPerDay),
		CapLead: u.Caps.MaxLead.Microseconds(), CapWindow: u.Caps.MaxWindow.Microseconds(),
		CapGPUHours: u.Caps.GPUHoursPerDay.Int64(),
	}
}

func (r userRow) toValue() (ledger.User, error) {
	return ledger.User{
		ID: r.Head.ID, OrganizationID: r.OrganizationID, Email: r.Email, Role: ledger.Role(r.Role),
		Caps: quota.Caps{
			MaxGPUs: r.CapGPUs, MaxPerDay: money.MicroUSD(r.CapPerDay),
			MaxLead: toDuration(r.CapLead), MaxWindow: toDuration(r.CapWindow),
			GPUHoursPerDay: quota.AtMost(r.CapGPUHours),
		},
		Active: r.Active, CreatedAt: toTime(r.Created), DeletedAt: toTime(r.Deleted), Version: r.Head.Version,
	}, nil
}

type keyRow struct {
	Head           rowHead `gorm:"embedded"`
	OrganizationID string  `gorm:"column:organization_id"`
	UserID         string  `gorm:"column:user_id"`
	Name           string  `gorm:"column:name"`
	Kind           string  `gorm:"column:kind"`
	Role           string  `gorm:"column:role"`
	CapGPUs        int     `gorm:"column:cap_gpus"`
	CapPerDay      int64   `gorm:"column:cap_per_day"`
	CapLead        int64   `gorm:"column:cap_lead"`
	CapWindow      int64   `gorm:"column:cap_window"`
	CapGPUHours    int64   `gorm:"column:cap_gpu_hours"`
	Hash           []byte  `gorm:"column:hash"`
	PepperVersion  int     `gorm:"column:pepper_version"`
	Last4          string  `gorm:"column:last4"`
	CreatedBy      string  `gorm:"column:created_by"`
	ParentID       string  `gorm:"column:parent_id"`
	Created        int64   `gorm:"column:created_at"`
	Expires        int64   `gorm:"column:expires_at"`
	Revoked        int64   `gorm:"column:revoked_at"`
	LastUsed       int64   `gorm:"column:last_used_at"`
}

func (keyRow) TableName() string  { return "api_keys" }
func (r keyRow) rowHead() rowHead { return r.Head }

func keyToRow(k ledger.Key) keyRow {
	return keyRow{
		Head: nextVersion(k.ID, k.Version), OrganizationID: k.OrganizationID, UserID: k.UserID, Name: k.Name,
		Kind: string(k.Kind), Role: string(k.Role),
		CapGPUs: k.Caps.MaxGPUs, CapPerDay: int64(k.Caps.MaxPerDay),
		CapLead: k.Caps.MaxLead.Microseconds(), CapWindow: k.Caps.MaxWindow.Microseconds(),
		CapGPUHours: k.Caps.GPUHoursPerDay.Int64(),
		Hash:        notNil(k.Hash), PepperVersion: k.PepperVersion, Last4: k.Last4, CreatedBy: k.CreatedBy,
		ParentID: k.ParentID,
		Created:  toMicros(k.CreatedAt), Expires: toMicros(k.ExpiresAt),
		Revoked: toMicros(k.RevokedAt), LastUsed: toMicros(k.LastUsedAt),
	}
}

func (r keyRow) toValue() (ledger.Key, error) {
	return ledger.Key{
		ID: r.Head.ID, OrganizationID: r.OrganizationID, UserID: r.UserID, Name: r.Name,
		Kind: ledger.KeyKind(r.Kind), Role: ledger.Role(r.Role),
		Caps: quota.Caps{
			MaxGPUs: r.CapGPUs, MaxPerDay: money.MicroUSD(r.CapPerDay),
			MaxLead: toDuration(r.CapLead), MaxWindow: toDuration(r.CapWindow),
			GPUHoursPerDay: quota.AtMost(r.CapGPUHours),
		},
		Hash: r.Hash, PepperVersion: r.PepperVersion, Last4: r.Last4, CreatedBy: r.CreatedBy, ParentID: r.ParentID,
		CreatedAt: toTime(r.Created), ExpiresAt: toTime(r.Expires),
		RevokedAt: toTime(r.Revoked), LastUsedAt: toTime(r.LastUsed), Version: r.Head.Version,
	}, nil
}

type pauseRow struct {
	OrganizationID string `gorm:"column:organization_id;primaryKey"`
	Reason         string `gorm:"column:reason"`
	By             string `gorm:"column:paused_by"`
	At             int64  `gorm:"column:paused_at"`
	Until          int64  `gorm:"column:until"`
}

func (pauseRow) TableName() string { return "prewarm_pauses" }

func pauseToRow(p ledger.Pause) pauseRow {
	return pauseRow{OrganizationID: p.OrganizationID, Reason: p.Reason, By: p.By, At: toMicros(p.At),
		Until: toMicros(p.Until)}
}

func (r pauseRow) toValue() (ledger.Pause, error) {
	return ledger.Pause{OrganizationID: r.OrganizationID, Reason: r.Reason, By: r.By, At: toTime(r.At),
		Until: toTime(r.Until)}, nil
}

type installationRow struct {
	ID          int64  `gorm:"column:id;primaryKey"`
	PepperCheck string `gorm:"column:pepper_check"`
}

func (installationRow) TableName() string { return "installation" }

func (r installationRow) toValue() (string, error) { return r.PepperCheck, nil }

// keepInstallation keeps the row that is there: the first start decides.
const keepInstallation = "ON CONFLICT (id) DO NOTHING"

func installationToRow(pepperCheck string) installationRow {
	return installationRow{ID: 1, PepperCheck: pepperCheck}
}
