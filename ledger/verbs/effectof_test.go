package verbs_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// A plan that changes an organization counts that one's GPUs, whoever makes it,
// and one that changes a pool nobody's.
func TestAPlanIsAboutWhomItChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, boss := w.newPerson("ann"), w.newPerson("operators")
	boss.Role = ledger.Operator
	w.warmNodes(1)
	w.mustAllocate(ann, 2)
	shrink := func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
		_, err := l.SetLimits(ctx, boss, ann.OrganizationID, 1, quota.Limits{GPUs: 1}, true)
		return 0, nil, err
	}
	e, _, err := w.ledger.DryRun(t.Context(), boss, shrink)
	require.NoError(t, err)
	require.Equal(t, []any{ann.OrganizationID, 2, 2, 1}, []any{e.OrganizationID, e.GPUsBefore, e.GPUsAfter, e.Limit})
	e, _, err = w.ledger.DryRun(t.Context(), boss, func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
		_, err := l.UpdatePool(ctx, boss, w.pool.ID, 1, func(p *capacity.Pool) { p.MaxNodes = 2 })
		return 0, nil, err
	})
	require.NoError(t, err)
	require.Empty(t, e.OrganizationID)
	require.Zero(t, e.Limit)
}
