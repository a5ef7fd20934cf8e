package app

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
)

// Zone finds the time zone that local times are meant in: the flag, TZ, the
// machine's own, else UTC. It is always an IANA name, which schedules need.
func (a *App) Zone(cmd *cobra.Command, flag string) (*time.Location, error) {
	for _, from := range []struct{ text, source string }{{flag, "--tz"}, {a.Getenv("TZ"), "TZ"}} {
		if from.text == "" {
			continue
		}
		zone, err := time.LoadLocation(strings.TrimPrefix(from.text, ":"))
		if err != nil || from.text == "Local" {
			return nil, exit.UsageErrorf(cmd.CommandPath()+" --help",
				"%s: there is no time zone %q; want a name such as Europe/Berlin", from.source, from.text)
		}
		return zone, nil
	}
	if link, err := os.Readlink("/etc/localtime"); err == nil {
		if _, n, ok := strings.Cut(link, "zoneinfo/"); ok {
			if zone, err := time.LoadLocation(n); err == nil {
				return zone, nil
			}
		}
	}
	return time.UTC, nil
}
