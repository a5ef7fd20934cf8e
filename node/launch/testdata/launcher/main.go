// Command launcher is the part of the node's daemon that becomes a holder's command.
package main

import (
	"os"

	"github.com/forewarm/forewarm/node/launch"
)

func main() { os.Exit(launch.Serve()) }
