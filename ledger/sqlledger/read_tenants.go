package sqlledger

import (
	"errors"

	"github.com/forewarm/forewarm/ledger"
)

func (r *reader) Organization(s ledger.Scope, id string) (ledger.Organization, error) {
	return one[organizationRow](scoped(r.query(), s, "id").Where("id = ?", id), "reading organization "+id)
}

func (r *reader) Organizations(s ledger.Scope, p ledger.Page) ([]ledger.Organization, error) {
	return list[organizationRow](paged(scoped(r.query(), s, "id").Where("deleted_at = 0"), p), "listing organizations")
}

func (r *reader) Cohort(name string) ([]ledger.Organization, error) {
	db := r.query().Where("cohort = ? AND cohort <> '' AND deleted_at = 0", name).Order("id")
	return list[organizationRow](db, "reading cohort "+name)
}

func (r *reader) User(s ledger.Scope, id string) (ledger.User, error) {
	return one[userRow](scoped(r.query(), s, tenant).Where("id = ?", id), "reading user "+id)
}

func (r *reader) Users(s ledger.Scope, p ledger.Page) ([]ledger.User, error) {
	return list[userRow](paged(scoped(r.query(), s, tenant).Where("deleted_at = 0"), p), "listing users")
}

func (r *reader) Key(s ledger.Scope, id string) (ledger.Key, error) {
	return one[keyRow](scoped(r.query(), s, tenant).Where("id = ?", id), "reading key "+id)
}

func (r *reader) Keys(s ledger.Scope, p ledger.Page) ([]ledger.Key, error) {
	return list[keyRow](paged(scoped(r.query(), s, tenant), p), "listing keys")
}

// Replay returns the stored answer to a request, and false when there is none.
func (r *reader) Replay(organizationID, route, key string) (ledger.Replay, bool, error) {
	found, err := one[replayRow](
		r.query().Where("organization_id = ? AND route = ? AND key = ?", organizationID, route, key),
		"reading a stored answer")
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Replay{}, false, nil
	}
	return found, err == nil, err
}
