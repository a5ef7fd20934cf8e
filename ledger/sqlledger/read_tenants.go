package sqlledger

import (
	"errors"

	"github.com/forewarm/forewarm/ledger"
)

func (r *reader) Organization(s ledger.Scope, id string) (ledger.Organization, error) {
	return readRow[organizationRow](inScope(r.newQuery(), s, "id").Where("id = ?", id), "reading organization "+id)
}

func (r *reader) Organizations(s ledger.Scope, p ledger.Page) ([]ledger.Organization, error) {
	return listRows[organizationRow](onPage(inScope(r.newQuery(), s, "id").Where("deleted_at = 0"), p), "listing organizations")
}

func (r *reader) Cohort(name string) ([]ledger.Organization, error) {
	db := r.newQuery().Where("cohort = ? AND cohort <> '' AND deleted_at = 0", name).Order("id")
	return listRows[organizationRow](db, "reading cohort "+name)
}

func (r *reader) User(s ledger.Scope, id string) (ledger.User, error) {
	return readRow[userRow](inScope(r.newQuery(), s, tenantColumn).Where("id = ?", id), "reading user "+id)
}

func (r *reader) Users(s ledger.Scope, p ledger.Page) ([]ledger.User, error) {
	return listRows[userRow](onPage(inScope(r.newQuery(), s, tenantColumn).Where("deleted_at = 0"), p), "listing users")
}

func (r *reader) Key(s ledger.Scope, id string) (ledger.Key, error) {
	return readRow[keyRow](inScope(r.newQuery(), s, tenantColumn).Where("id = ?", id), "reading key "+id)
}

func (r *reader) Keys(s ledger.Scope, f ledger.KeyFilter, p ledger.Page) ([]ledger.Key, error) {
	db := inScope(r.newQuery(), s, tenantColumn)
	if !f.ValidAt.IsZero() {
		db = db.Where("revoked_at = 0 AND (expires_at = 0 OR expires_at > ?)", toMicros(f.ValidAt))
	}
	if p.Newest {
		return listRows[keyRow](newestPage(db, "api_keys", p), "listing keys")
	}
	return listRows[keyRow](onPage(db, p), "listing keys")
}

func (r *reader) OperatorKeys() ([]ledger.Key, error) {
	return listRows[keyRow](r.newQuery().Where("role = ? AND revoked_at = 0", ledger.Operator).Order("id"),
		"listing operators' keys")
}

// bookerRow is an id under which bookings are counted.
type bookerRow struct {
	ID string `gorm:"column:id"`
}

func (bookerRow) TableName() string { return "api_keys" }

// offspringQuery of the keys for which a condition holds. UNION ends a circle, which
// the ledger never makes.
func offspringQuery(of string) string {
	return `FROM (
		WITH RECURSIVE tree (id) AS (
			SELECT id FROM api_keys WHERE ` + of + `
			UNION SELECT k.id FROM api_keys AS k JOIN tree AS t ON k.parent_id = t.id)
		SELECT id FROM tree UNION ALL SELECT id FROM schedules WHERE made_by IN (SELECT id FROM tree)) AS bookers ORDER BY id`
}

func (r *reader) Offspring(root ledger.KeyRoot) ([]string, error) {
	of, id := "id = ?", root.KeyID
	if id == "" {
		of, id = "user_id = ? AND user_id <> ''", root.UserID
	}
	var rows []bookerRow
	if err := r.readTogether(queryRows("reading what a key made", &rows, offspringQuery(of), id)); err != nil {
		return nil, err
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return ids, nil
}

// Replay returns the stored answer to a request, and false when there is none.
func (r *reader) Replay(organizationID, route, key string) (ledger.Replay, bool, error) {
	found, err := readRow[replayRow](
		r.newQuery().Where("organization_id = ? AND route = ? AND key = ?", organizationID, route, key),
		"reading a stored answer")
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Replay{}, false, nil
	}
	return found, err == nil, err
}
