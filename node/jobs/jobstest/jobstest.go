// Package jobstest has a runner of jobs for tests.
package jobstest

import (
	"sync"

	"github.com/forewarm/forewarm/node/buildtest"
)

// Runner returns the command line of a runner, as jobs.Config takes it. The first call of a process builds it.
func Runner() []string { return []string{program(), "job"} }

var program = sync.OnceValue(func() string {
	return buildtest.Program("github.com/forewarm/forewarm/node/jobs/testdata/runner")
})
