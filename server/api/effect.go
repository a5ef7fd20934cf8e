package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/wait"
	"github.com/forewarm/forewarm/ledger"
)

// renderEffect renders an effect as the part of a plan that is stored with it. What
// belongs to other tenants is only counted.
func renderEffect(actor ledger.Actor, e ledger.Effect, answer []byte) ([]byte, error) {
	p := contract.Plan{Displaced: []string{}, Reasons: []contract.Blocker{}, Offers: []contract.Offer{},
		Cost: formatMoney(e.Cost), Wait: encodeWait(e.Wait),
		Quota: contract.QuotaChange{OrganizationID: e.OrganizationID, GPUsBefore: e.GPUsBefore, GPUsAfter: e.GPUsAfter,
			MaxGPUs: e.Limit}}
	p.Displaced, p.Others = splitDisplaced(actor, e)
	var err error
	if p.Diff, err = diffRows(actor, e); err != nil {
		return nil, err
	}
	var outcome contract.PlanOutcome // of an agent's plan; other answers have no windows
	if err = json.Unmarshal(answer, &outcome); err != nil {
		return nil, fmt.Errorf("reading the answer of a plan: %w", err)
	}
	for _, w := range outcome.Windows {
		p.Reasons, p.Offers = append(p.Reasons, w.Blockers...), append(p.Offers, w.Offers...)
	}
	return json.Marshal(p)
}

func splitDisplaced(actor ledger.Actor, e ledger.Effect) (own []string, others int) {
	own = []string{}
	for _, r := range e.Displaced() {
		if mayKnow(actor, r.OrganizationID) {
			own = append(own, r.ID)
		} else {
			others++
		}
	}
	return own, others
}

func mayKnow(actor ledger.Actor, organizationID string) bool {
	return actor.Role == ledger.Operator || actor.OrganizationID == organizationID
}

// diffRows lists the rows whose fields, as the API shows them, differ.
func diffRows(actor ledger.Actor, e ledger.Effect) ([]contract.RowChange, error) {
	d := rowDiff{changes: []contract.RowChange{}}
	for _, p := range e.Organizations {
		appendChange(&d, "organization", p, func(o ledger.Organization) string { return o.ID },
			encodeOrganization, alwaysLive)
	}
	for _, p := range e.Pools {
		appendChange(&d, "pool", p, func(p ledger.Pool) string { return p.ID }, encodePoolAt(time.Time{}), alwaysLive)
	}
	for _, p := range e.Nodes {
		appendChange(&d, "node", p, nodeID, func(n node.Node) contract.Node { return encodeNode(actor, n) },
			func(n node.Node) bool { return !node.Machine.Terminal(n.State()) })
	}
	for _, p := range e.Reservations {
		if mayKnow(actor, p.After.OrganizationID) {
			appendChange(&d, "reservation", p, func(r reservation.Reservation) string { return r.ID },
				encodeReservation, reservation.Reservation.Live)
		}
	}
	for _, p := range e.Allocations {
		if mayKnow(actor, p.After.OrganizationID) {
			appendChange(&d, "allocation", p, func(a allocation.Allocation) string { return a.ID }, encodeAllocation,
				allocation.Allocation.Live)
		}
	}
	return d.changes, d.err
}

func alwaysLive[T any](T) bool { return true }

// rowDiff collects changes until something goes wrong.
type rowDiff struct {
	changes []contract.RowChange
	err     error
}

func appendChange[T, C any](d *rowDiff, kind string, p ledger.Pair[T], id func(T) string, encode func(T) C,
	live func(T) bool) {
	if d.err != nil {
		return
	}
	row := contract.RowChange{Kind: kind, Change: "created"}
	var before map[string]json.RawMessage
	if p.Before != nil {
		row.ID, row.Change = id(p.After), "changed"
		if before, d.err = fieldsOf(encode(*p.Before)); live(*p.Before) && !live(p.After) {
			row.Change = "ended"
		}
	}
	after, err := fieldsOf(encode(p.After))
	if d.err == nil {
		d.err = err
	}
	if row.Fields = fieldChanges(before, after); len(row.Fields) > 0 {
		d.changes = append(d.changes, row)
	}
}

// fieldsOf returns what the API shows of a row, without what says nothing about
// the change: its id, whose it is, and when it was made.
func fieldsOf(row any) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("encoding a row: %w", err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("reading a row's fields: %w", err)
	}
	for _, name := range []string{"id", "version", "organization_id", "made_by", "held_by", "origin", "created_at",
		"requested_at"} {
		delete(fields, name)
	}
	return fields, nil
}

func fieldChanges(before, after map[string]json.RawMessage) []contract.FieldChange {
	names := make([]string, 0, len(before)+len(after))
	for name := range before {
		names = append(names, name)
	}
	for name := range after {
		names = append(names, name)
	}
	slices.Sort(names)
	var list []contract.FieldChange
	for _, name := range slices.Compact(names) {
		from, to := orNull(before[name]), orNull(after[name])
		if !bytes.Equal(from, to) && (before != nil || !isEmptyValue(to)) {
			list = append(list, contract.FieldChange{Name: name, From: from, To: to})
		}
	}
	return list
}

func orNull(v json.RawMessage) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}

// isEmptyValue reports whether a new row says nothing by a value.
func isEmptyValue(v json.RawMessage) bool {
	return slices.Contains([]string{"null", "[]", `""`, "false", "0"}, string(v))
}

// tenth is as exact as an estimate is told.
const tenth = 100 * time.Millisecond

func encodeWait(e *wait.Estimate) *contract.WaitEstimate {
	if e == nil {
		return nil
	}
	round := func(d time.Duration) float64 { return d.Round(tenth).Seconds() }
	return &contract.WaitEstimate{P10Seconds: round(e.P10), P50Seconds: round(e.P50), P90Seconds: round(e.P90),
		Basis: e.Basis, Samples: e.Samples}
}
