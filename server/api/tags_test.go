package api

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// release keeps gin from printing its routes. It is a setting of the process.
var release = sync.OnceFunc(func() { gin.SetMode(gin.ReleaseMode) })

// What is said of a field away from it is said of a field that there is.
func TestLongTagsNameFields(t *testing.T) {
	t.Parallel()
	release()
	cfg := Config{Ledger: &verbs.Ledger{}, Clock: clock.System{}}
	_, doc, _ := Register(gin.New(), cfg)
	inputs := map[string]reflect.Type{}
	for _, e := range endpoints(&API{Config: cfg}) {
		inputs[e.ID] = e.input
	}
	found := completeTags(doc, inputs)
	want := slices.Sorted(maps.Keys(inputTags))
	require.ElementsMatch(t, append(want, contract.LongTags()...), slices.Compact(slices.Sorted(slices.Values(found))))
}
