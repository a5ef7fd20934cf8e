package api

import (
	"slices"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
)

// What contract says of a field away from it is said of a field that there is.
func TestLongTagsNameFields(t *testing.T) {
	t.Parallel()
	doc, _ := Register(gin.New(), Config{Ledger: &ledger.Ledger{}, Clock: clock.System{}})
	found := completeTags(doc.Components.Schemas)
	slices.Sort(found)
	require.Equal(t, contract.LongTags(), slices.Compact(found))
}
