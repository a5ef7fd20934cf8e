package contract_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

func TestCatalogue(t *testing.T) {
	t.Parallel()
	seen, slug := map[string]bool{}, regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, row := range contract.Catalogue {
		require.False(t, seen[row.Code], "%s is there twice", row.Code)
		seen[row.Code] = true
		require.Regexp(t, slug, row.Code)
		require.NotEmpty(t, row.Title)
		require.True(t, row.Status >= 400 && row.Status < 600, row.Code)
		require.NotEqual(t, 429, statusOf(row, contract.CodeQuotaExceeded), "back-off must not hammer a quota")
		p := contract.NewProblem(row.Code, "detail")
		require.Equal(t, contract.ProblemBase+row.Code, p.Type)
		require.Equal(t, row.Status, p.Status)
	}
	require.Equal(t, contract.CodeInternal, contract.NewProblem("no-such-code", "").Code)
}

func statusOf(row contract.ProblemType, code string) int {
	if row.Code == code {
		return row.Status
	}
	return 0
}

func TestUnsetTimesAreLeftOut(t *testing.T) {
	t.Parallel()
	out, err := json.Marshal(contract.Allocation{})
	require.NoError(t, err)
	require.NotContains(t, string(out), "active_at")
	require.NotContains(t, string(out), "wait_seconds")
}
