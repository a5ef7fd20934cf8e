package cli

import (
	"testing"
	"time"

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
		payers = append(payers, v.columns[1].cell(x))
	}
	require.Equal(t, []string{"beta (org_1)", "beta (org_2)", "acme", "acme", "early warm", "boot"}, payers)
}

// A time that is known is no span.
func TestClears(t *testing.T) {
	t.Parallel()
	at := func(early, late time.Duration) contract.BlockedBy {
		return contract.BlockedBy{ClearsAt: &contract.InstantBand{P10: monday.Add(early), P90: monday.Add(late)}}
	}
	require.Equal(t, "  clears in 30s", clearsText(at(30*time.Second, 30*time.Second), monday))
	require.Equal(t, "  clears in 30s to 1m", clearsText(at(30*time.Second, time.Minute), monday))
}
