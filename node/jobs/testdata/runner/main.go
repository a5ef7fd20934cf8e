// Command runner is the part of the node's daemon that runs jobs.
package main

import (
	"os"

	"github.com/forewarm/forewarm/node/jobs"
	"github.com/forewarm/forewarm/node/launch"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "launch" {
		os.Exit(launch.Serve())
	}
	os.Exit(jobs.Run(launch.Launcher{"/proc/self/exe", "launch"}))
}
