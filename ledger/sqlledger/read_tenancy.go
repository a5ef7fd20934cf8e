package sqlledger

import (
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// tenancyReader reads organizations, their users and keys, and what is stored of
// their requests.
type tenancyReader struct{ *connection }

func (r tenancyReader) Organization(s ledger.Scope, id string) (ledger.Organization, error) {
	return readRow[organizationRow](inScope(r.newQuery(), s, "id").Where("id = ?", id), "reading organization "+id)
}

func (r tenancyReader) Organizations(s ledger.Scope, p ledger.Page) ([]ledger.Organization, error) {
	db := inScope(r.newQuery(), s, "id").Where("deleted_at = 0")
	return listRows[organizationRow](onPage(db, p), "listing organizations")
}

func (r tenancyReader) Cohort(name string) ([]ledger.Organization, error) {
	db := r.newQuery().Where("cohort = ? AND cohort <> '' AND deleted_at = 0", name).Order("id")
	return listRows[organizationRow](db, "reading cohort "+name)
}

func (r tenancyReader) User(s ledger.Scope, id string) (ledger.User, error) {
	return readOwnRow[userRow](r.connection, s, "user", id)
}

func (r tenancyReader) Users(s ledger.Scope, p ledger.Page) ([]ledger.User, error) {
	return listRows[userRow](onPage(r.ownRows(s).Where("deleted_at = 0"), p), "listing users")
}

func (r tenancyReader) Key(s ledger.Scope, id string) (ledger.Key, error) {
	return readOwnRow[keyRow](r.connection, s, "key", id)
}

func (r tenancyReader) Keys(s ledger.Scope, f ledger.KeyFilter, p ledger.Page) ([]ledger.Key, error) {
	db := r.ownRows(s)
	if !f.ValidAt.IsZero() {
		db = db.Where(endedKeys, toMicros(f.ValidAt))
	}
	if p.Newest {
		return listRows[keyRow](newestPage(db, "api_keys", false, p), "listing keys")
	}
	return listRows[keyRow](onPage(db, p), "listing keys")
}

// endedKeys leaves out those that may not be used at a time, because they, their people or a key that they rest on may
// not. UNION ends a circle, which the ledger never makes.
const endedKeys = `id NOT IN (
	WITH RECURSIVE ended (id) AS (
		SELECT k.id FROM api_keys AS k LEFT JOIN users AS u ON u.id = k.user_id
		WHERE k.revoked_at <> 0 OR (k.expires_at <> 0 AND k.expires_at <= ?)
			OR (k.user_id <> '' AND (u.id IS NULL OR NOT u.active OR u.deleted_at <> 0))
		UNION SELECT k.id FROM api_keys AS k JOIN ended AS e ON k.parent_id = e.id)
	SELECT id FROM ended)`

func (r tenancyReader) OperatorKeys() ([]ledger.Key, error) {
	return listRows[keyRow](r.newQuery().Where("role = ? AND revoked_at = 0", ledger.Operator).Order("id"),
		"listing operators' keys")
}

// bookerRow is an id under which bookings are counted: of a key or a schedule.
type bookerRow struct {
	ID string `gorm:"column:id"`
}

func (bookerRow) TableName() string { return "api_keys" }

// offspringQuery selects what descends from the keys for which a condition holds.
// UNION ends a circle, which the ledger never makes.
func offspringQuery(roots string) string {
	return `FROM (
		WITH RECURSIVE tree (id) AS (
			SELECT id FROM api_keys WHERE ` + roots + `
			UNION SELECT k.id FROM api_keys AS k JOIN tree AS t ON k.parent_id = t.id)
		SELECT id FROM tree UNION ALL SELECT id FROM schedules WHERE made_by IN (SELECT id FROM tree)) AS bookers` +
		" ORDER BY id"
}

func (r tenancyReader) Offspring(root ledger.KeyRoot) ([]string, error) {
	roots, id := "id = ?", root.KeyID
	if id == "" {
		roots, id = "user_id = ? AND user_id <> ''", root.UserID
	}
	var rows []bookerRow
	if err := r.readTogether(queryRows("reading what a key made", &rows, offspringQuery(roots), id)); err != nil {
		return nil, err
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return ids, nil
}

// Pauses returns the pauses that are in force.
func (r tenancyReader) Pauses() ([]ledger.Pause, error) {
	db := r.newQuery().Where("until = 0 OR until > ?", toMicros(r.Now())).Order("organization_id")
	return listRows[pauseRow](db, "reading what is paused")
}

// PepperCheck reads what the first start wrote.
func (r tenancyReader) PepperCheck() (string, error) {
	check, _, err := findRow[installationRow](r.newQuery(), "reading the check of the pepper")
	return check, err
}

// Replay returns the stored answer to a request, and false when there is none.
func (r tenancyReader) Replay(owner, route, key string) (ledger.Replay, bool, error) {
	return findRow[replayRow](
		r.newQuery().Where("organization_id = ? AND route = ? AND key = ?", owner, route, key),
		"reading a stored answer")
}

// HasOldReplays reports whether answers are stored that are an organization's.
func (r tenancyReader) HasOldReplays() (bool, error) {
	prefix := ids.Organization + "_"
	_, found, err := findRow[replayRow](r.newQuery().Where("substr(organization_id, 1, ?) = ?", len(prefix), prefix),
		"looking for answers of organizations")
	return found, err
}

func (r tenancyReader) Preview(s ledger.Scope, id string) (ledger.Preview, error) {
	return readOwnRow[previewRow](r.connection, s, "plan", id)
}
