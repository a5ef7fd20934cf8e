// Package launchtest has a launcher for tests, and programs that are hard to launch.
package launchtest

import (
	"sync"

	"github.com/forewarm/forewarm/node/buildtest"
	"github.com/forewarm/forewarm/node/launch"
)

// Launcher returns a launcher. The first call of a process builds it.
func Launcher() launch.Launcher { return launch.Launcher{program()} }

var program = sync.OnceValue(func() string {
	return buildtest.Program("github.com/forewarm/forewarm/node/launch/testdata/launcher")
})
