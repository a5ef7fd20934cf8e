package sqlledger

import (
	"gorm.io/gorm"

	"github.com/forewarm/forewarm/ledger"
)

// nounTable says where rows of a noun and their names are.
type nounTable struct {
	table, name string
	tenant      string // the column of the organization; empty: they are nobody's
	live        string // the condition for those that are not over
}

var nounTables = map[ledger.Noun]nounTable{
	ledger.NounOrganization: {"organizations", "name", "id", "deleted_at = 0"},
	ledger.NounUser:         {"users", "email", tenantColumn, "deleted_at = 0"},
	ledger.NounKey:          {"api_keys", "name", tenantColumn, "revoked_at = 0"},
	ledger.NounPool:         {"pools", "name", "", "deleted_at = 0"},
	ledger.NounSchedule:     {"schedules", "name", tenantColumn, "deleted_at = 0"},
	ledger.NounNode:         {"nodes", "provider_id", "", liveNode},
}

// nameReader reads what ids and names stand for.
type nameReader struct{ *connection }

// namedRow is a row of any of the tables.
type namedRow struct {
	ID             string `gorm:"column:id"`
	Name           string `gorm:"column:name"`
	OrganizationID string `gorm:"column:organization_id"`
}

func (r nameReader) namedRows(s ledger.Scope, n ledger.Noun) (*gorm.DB, nounTable) {
	t := nounTables[n]
	owner := t.tenant
	if owner == "" {
		owner = "''"
	}
	db := r.newQuery().Table(t.table).Select("id, " + t.name + " AS name, " + owner + " AS organization_id").Order("id")
	if t.tenant != "" {
		db = inScope(db, s, t.tenant)
	}
	return db, t
}

func (r nameReader) Names(s ledger.Scope, n ledger.Noun, ids []string) ([]ledger.Named, error) {
	db, _ := r.namedRows(s, n)
	return readNames(db.Where("id IN ?", ids), "reading names")
}

func (r nameReader) FindNamed(s ledger.Scope, n ledger.Noun, name string) ([]ledger.Named, error) {
	db, t := r.namedRows(s, n)
	return readNames(db.Where(t.live).Where(t.name+" = ?", name).Limit(defaultPage), "looking for a name")
}

func (r nameReader) ListNames(s ledger.Scope, n ledger.Noun) ([]ledger.Named, error) {
	db, t := r.namedRows(s, n)
	return readNames(db.Where(t.live).Limit(maxPage), "listing names")
}

func readNames(db *gorm.DB, doing string) ([]ledger.Named, error) {
	var rows []namedRow
	if err := db.Find(&rows).Error; err != nil {
		return nil, wrapError(doing, err)
	}
	out := make([]ledger.Named, len(rows))
	for i, row := range rows {
		out[i] = ledger.Named(row)
	}
	return out, nil
}
