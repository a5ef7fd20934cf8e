package ledger

// CheckAdministers reports nil when the actor may change people and keys of the
// organization.
func (a Actor) CheckAdministers(orgID string) error {
	if a.Role == Operator || (a.Role == Admin && a.OrganizationID == orgID && a.Kind == PersonKey) {
		return nil
	}
	return ErrDenied
}
