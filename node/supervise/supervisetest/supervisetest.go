// Package supervisetest has a supervisor of sessions for tests.
package supervisetest

import (
	"sync"

	"github.com/forewarm/forewarm/node/buildtest"
)

// Command returns the command line of a supervisor, as supervise.Open takes it. The first call of a process builds it.
func Command() []string { return []string{program()} }

var program = sync.OnceValue(func() string {
	return buildtest.Program("github.com/forewarm/forewarm/node/supervise/testdata/supervisor")
})
