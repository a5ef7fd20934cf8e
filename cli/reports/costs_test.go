package reports

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// Organizations of one name, of which all but one are deleted, are told apart.
func TestCostsOfNamesakes(t *testing.T) {
	t.Parallel()
	lines := []contract.CostLine{{OrganizationID: "org_1", OrganizationName: "beta"},
		{OrganizationID: "org_2", OrganizationName: "beta"},
		{OrganizationID: "org_3", OrganizationName: "acme"}, {OrganizationID: "org_3", OrganizationName: "acme"},
		{Cause: "early_warm"}, {Cause: "boot"}}
	v := costView(contract.Money{}, lines)
	var payers []string
	for _, x := range lines {
		payers = append(payers, v.Columns[1].Cell(x))
	}
	require.Equal(t, []string{"beta (org_1)", "beta (org_2)", "acme", "acme", "early warm", "boot"}, payers)
}
