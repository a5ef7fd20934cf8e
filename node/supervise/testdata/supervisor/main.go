// Command supervisor is what supervises sessions in tests: the program of the daemon, without the daemon.
package main

import (
	"os"

	"github.com/forewarm/forewarm/node/launch"
	"github.com/forewarm/forewarm/node/supervise"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "launch" {
		os.Exit(launch.Serve())
	}
	os.Exit(supervise.Run(launch.Launcher{"/proc/self/exe", "launch"}))
}
