// Command program is the command line alone, for tests of what only a process of its own sees.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/forewarm/forewarm/cli"
	"github.com/forewarm/forewarm/cli/app"
)

func main() {
	ctx, stop := cli.SignalContext(context.Background())
	code := cli.Execute(ctx, cli.Root("test", func(app.SlurmAccess) (app.SlurmCluster, error) {
		return app.SlurmCluster{}, errors.New("there is none")
	}))
	stop()
	os.Exit(code)
}
