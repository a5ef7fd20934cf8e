// Command forewarm is the control plane, whole or in parts, and its command
// line.
package main

import (
	"context"
	"os"
	"runtime/debug"
	_ "time/tzdata" // schedules need every zone, also where the system has none

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli"
	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cmd/forewarm/internal/daemon"
)

// version is set by release builds with -ldflags "-X main.version=…".
var version = ""

//go:generate go run -trimpath . man --markdown ../../docs/cli.md

func main() {
	ctx, stop := cli.SignalContext(context.Background())
	code := cli.Execute(ctx, newRoot())
	stop()
	os.Exit(code)
}

// newRoot is the whole program's command: the people's and the control plane's.
func newRoot() *cobra.Command {
	root := cli.Root(versionText(), daemon.OpenSlurm)
	root.AddGroup(&cobra.Group{ID: "run", Title: "Run the control plane:"})
	for _, cmd := range daemon.Commands(versionText(), contextfile.Saved{}) {
		cmd.GroupID = "run"
		root.AddCommand(cmd)
	}
	if keys, _, err := root.Find([]string{"key"}); err == nil {
		keys.AddCommand(daemon.RecoverCommand(versionText(), contextfile.Saved{}))
	}
	return root
}

// versionText is the release's version, or the revision that was built.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return "dev-" + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return "dev"
}
