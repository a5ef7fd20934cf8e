package sqlledger

import (
	"encoding/json"
	"fmt"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/ledger"
)

type provisionerRow struct {
	Name       string `gorm:"column:name;primaryKey"`
	Offers     string `gorm:"column:offers"`
	ReportedAt int64  `gorm:"column:reported_at"`
}

func (provisionerRow) TableName() string { return "provisioners" }

const replaceProvisioner = "ON CONFLICT (name) DO UPDATE SET offers = excluded.offers, reported_at = " +
	"excluded.reported_at"

func provisionerToRow(p ledger.Provisioner) provisionerRow {
	offers, _ := json.Marshal(p.Offers) // strings and numbers can always be encoded
	return provisionerRow{Name: p.Name, Offers: string(offers), ReportedAt: toMicros(p.ReportedAt)}
}

func (r provisionerRow) toValue() (ledger.Provisioner, error) {
	p := ledger.Provisioner{Name: r.Name, ReportedAt: toTime(r.ReportedAt)}
	if err := json.Unmarshal([]byte(r.Offers), &p.Offers); err != nil {
		return p, fmt.Errorf("reading the offers of %s: %w", r.Name, err)
	}
	return p, nil
}

type provisionerHoldRow struct {
	Name   string `gorm:"column:name;primaryKey"`
	Holder string `gorm:"column:holder"`
	Host   string `gorm:"column:holder_host"`
	Until  int64  `gorm:"column:held_until"`
}

func (provisionerHoldRow) TableName() string { return "provisioners" }

func (r provisionerHoldRow) toValue() (ledger.ProvisionerHold, error) {
	return ledger.ProvisionerHold{Name: r.Name, Holder: r.Holder, Host: r.Host, Until: toTime(r.Until)}, nil
}

// holdProvisioner asks and writes in one statement, so that of two workers that
// begin at once exactly one gets the hold. For a provisioner that never reported it
// adds a row with an old, empty report.
const holdProvisioner = `INSERT INTO provisioners (name, offers, reported_at, holder, holder_host, held_until)` +
	` VALUES (?, '[]', 0, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, holder_host = excluded.holder_host,` +
	` held_until = excluded.held_until
WHERE provisioners.holder = excluded.holder OR provisioners.held_until <= ?`

func (t *tx) HoldProvisioner(h ledger.ProvisionerHold) (ledger.ProvisionerHold, error) {
	if _, err := t.execStatement("holding provisioner "+h.Name, holdProvisioner,
		h.Name, h.Holder, h.Host, toMicros(h.Until), toMicros(t.Now())); err != nil {
		return h, err
	}
	return readRow[provisionerHoldRow](t.newQuery().Where("name = ?", h.Name),
		"reading the hold of provisioner "+h.Name)
}

// watchedRow is how far a provisioner's cluster was watched. For one that never reported
// it adds a row with an old, empty report.
type watchedRow struct {
	Name       string `gorm:"column:name;primaryKey"`
	Offers     string `gorm:"column:offers"`
	ReportedAt int64  `gorm:"column:reported_at"`
	Mark       string `gorm:"column:observed_mark"`
	At         int64  `gorm:"column:observed_at"`
	Blind      int64  `gorm:"column:blind_since"`
	KeepWithin int64  `gorm:"column:keep_within"`
	Waiting    string `gorm:"column:waiting"`
	Room       string `gorm:"column:room"`
}

func (watchedRow) TableName() string { return "provisioners" }

const replaceWatched = "ON CONFLICT (name) DO UPDATE SET observed_mark = excluded.observed_mark, " +
	"observed_at = excluded.observed_at, blind_since = excluded.blind_since, keep_within = excluded.keep_within, " +
	"waiting = excluded.waiting, room = excluded.room"

func watchedToRow(w ledger.Watched) watchedRow {
	return watchedRow{Name: w.Provisioner, Offers: "[]", Mark: w.Mark, At: toMicros(w.At),
		Blind: toMicros(w.BlindSince), KeepWithin: w.KeepWithin.Microseconds(), Waiting: packWaiting(w.Waiting),
		Room: packRooms(w.Rooms)}
}

func (r watchedRow) toValue() (ledger.Watched, error) {
	waiting, err := unpackWaiting(r.Waiting)
	if err != nil {
		return ledger.Watched{}, err
	}
	rooms, err := unpackRooms(r.Room)
	return ledger.Watched{Provisioner: r.Name, Mark: r.Mark, At: toTime(r.At), BlindSince: toTime(r.Blind),
		KeepWithin: toDuration(r.KeepWithin), Waiting: waiting, Rooms: rooms}, err
}

// waitingText is the work of a pool that waits for one reason, as it is stored.
type waitingText struct {
	Pool   string   `json:"pool"`
	Reason string   `json:"reason"`
	Count  int      `json:"count"`
	IDs    []string `json:"ids,omitempty"`
}

func packWaiting(waiting []ledger.WaitingWork) string {
	text := []waitingText{}
	for _, w := range waiting {
		text = append(text, waitingText{Pool: w.PoolID, Reason: w.Reason, Count: w.Count, IDs: w.IDs})
	}
	packed, _ := json.Marshal(text) // strings and numbers can always be encoded
	return string(packed)
}

func unpackWaiting(packed string) ([]ledger.WaitingWork, error) {
	var text []waitingText
	if err := json.Unmarshal([]byte(packed), &text); err != nil {
		return nil, fmt.Errorf("column waiting holds nothing that can be read: %.80q", packed)
	}
	var waiting []ledger.WaitingWork
	for _, w := range text {
		waiting = append(waiting, ledger.WaitingWork{PoolID: w.Pool, Reason: w.Reason, Count: w.Count, IDs: w.IDs})
	}
	return waiting, nil
}

type orphanRow struct {
	Provisioner string `gorm:"column:provisioner;primaryKey"`
	Machine     string `gorm:"column:machine;primaryKey"`
	NodeID      string `gorm:"column:node_id"`
	Region      string `gorm:"column:region"`
	Type        string `gorm:"column:type"`
	GPUs        int    `gorm:"column:gpus"`
	Price       int64  `gorm:"column:price"`
	MinBilling  int64  `gorm:"column:min_billing"`
	BilledFrom  int64  `gorm:"column:billed_from"`
	BilledUntil int64  `gorm:"column:billed_until"`
}

func (orphanRow) TableName() string { return "orphans" }

// replaceOrphan keeps the first recorded birth: an orphan whose provider tells no
// birth would otherwise grow younger.
const replaceOrphan = "ON CONFLICT (provisioner, machine) DO UPDATE SET billed_until = excluded.billed_until"

func orphanToRow(o ledger.Orphan) orphanRow {
	return orphanRow{
		Provisioner: o.Source.Provisioner, Machine: o.Machine, NodeID: o.NodeID, Region: o.Source.Region,
		Type: o.Source.Type,
		GPUs: o.GPUs, Price: int64(o.Source.Price), MinBilling: o.Source.MinBilling.Microseconds(),
		BilledFrom: toMicros(o.BilledFrom), BilledUntil: toMicros(o.BilledUntil),
	}
}

func (r orphanRow) toValue() (ledger.Orphan, error) {
	return ledger.Orphan{
		Machine: r.Machine, NodeID: r.NodeID, GPUs: r.GPUs,
		Source: capacity.Offering{Provisioner: r.Provisioner, Region: r.Region, Type: r.Type,
			Price: money.MicroUSD(r.Price), MinBilling: toDuration(r.MinBilling)},
		BilledFrom: toTime(r.BilledFrom), BilledUntil: toTime(r.BilledUntil),
	}, nil
}

// roomText is the room of a pool, as it is stored.
type roomText struct {
	Pool   string       `json:"pool"`
	At     int64        `json:"at"`
	Idle   int          `json:"idle"`
	Shared []sharedText `json:"shared,omitempty"`
}

type sharedText struct {
	Free  int `json:"free"`
	Nodes int `json:"nodes"`
}

func packRooms(rooms []ledger.Room) string {
	text := []roomText{}
	for _, r := range rooms {
		t := roomText{Pool: r.PoolID, At: toMicros(r.At), Idle: r.Idle}
		for _, n := range r.Shared {
			t.Shared = append(t.Shared, sharedText(n))
		}
		text = append(text, t)
	}
	packed, _ := json.Marshal(text) // strings and numbers can always be encoded
	return string(packed)
}

func unpackRooms(packed string) ([]ledger.Room, error) {
	var text []roomText
	if err := json.Unmarshal([]byte(packed), &text); err != nil {
		return nil, fmt.Errorf("column room holds nothing that can be read: %.80q", packed)
	}
	var rooms []ledger.Room
	for _, t := range text {
		r := ledger.Room{PoolID: t.Pool, At: toTime(t.At), Idle: t.Idle}
		for _, n := range t.Shared {
			r.Shared = append(r.Shared, ledger.SharedNodes(n))
		}
		rooms = append(rooms, r)
	}
	return rooms, nil
}
