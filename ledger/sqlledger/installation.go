package sqlledger

type installationRow struct {
	ID          int64  `gorm:"column:id;primaryKey"`
	PepperCheck string `gorm:"column:pepper_check"`
}

func (installationRow) TableName() string { return "installation" }

func (r installationRow) toValue() (string, error) { return r.PepperCheck, nil }

// keepInstallation: whoever was first decides.
const keepInstallation = "ON CONFLICT (id) DO NOTHING"

func installationToRow(pepperCheck string) installationRow {
	return installationRow{ID: 1, PepperCheck: pepperCheck}
}

// PepperCheck reads what the first start wrote.
func (r *reader) PepperCheck() (string, error) {
	found, err := listRows[installationRow](r.newQuery().Limit(1), "reading the check of the pepper")
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}
