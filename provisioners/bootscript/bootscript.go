// Package bootscript is the script that brings the node's daemon onto a new machine: it
// installs a unit of systemd, which downloads the daemon from the control plane and keeps it
// running. The machine needs systemd, and for a download curl and sha256sum. Where the first build
// of the daemon does not run, the machine takes the static one.
//
// The script holds the node's join token. Whoever may read what a machine was made with can
// read it, until the daemon has joined and the token is spent.
package bootscript

import (
	_ "embed" // the scripts and the unit
	"errors"
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/provisioners"
)

var (
	//go:embed bootscript.sh
	script string
	//go:embed fetch.sh
	fetch string
	// unit is deploy/systemd/forewarm-node.service.
	//go:embed forewarm-node.service
	unit string
)

// Source is where a machine gets the daemon's program from.
type Source string

// The sources.
const (
	None     Source = "none"     // no daemon is started
	Download Source = "download" // from the control plane, which has to hand it out
	Image    Source = "image"    // /usr/local/bin/forewarm-node of the machine's image
)

// Check refuses what is none of the sources; empty is None.
func (s Source) Check() error {
	switch s {
	case "", None, Download, Image:
		return nil
	}
	return fmt.Errorf("daemon: %q is not %s, %s or %s", s, None, Download, Image)
}

// Starts reports whether machines get a daemon.
func (s Source) Starts() bool { return s == Download || s == Image }

// Render returns the script for the machine of a node. The same node and daemon make the same
// bytes. It fails where nothing could be downloaded.
func Render(from Source, nodeID string, d provisioners.Daemon) (string, error) {
	programs := renderPrograms(d.Programs)
	if from == Download && programs == "" {
		return "", errors.New("the control plane has no program of the daemon to hand out")
	}
	var settings strings.Builder
	for _, setting := range [][2]string{
		{"from", string(from)}, {"url", d.URL}, {"node", nodeID}, {"join_token", d.Token.Reveal()},
	} {
		fmt.Fprintf(&settings, "%s=%s\n", setting[0], quote(setting[1]))
	}
	settings.WriteString("root=${FOREWARM_ROOT:-}\n")
	whole := strings.Replace(script, "# SETTINGS\n", settings.String(), 1)
	whole = strings.Replace(whole, "# UNIT\n", unit, 1)
	return strings.Replace(whole, "# FETCH\n", strings.Replace(fetch, "# PROGRAMS\n", programs, 1), 1), nil
}

// renderPrograms are the cases of the script that downloads, one for each architecture of which
// there is a program.
func renderPrograms(programs provisioners.DaemonPrograms) string {
	var cases strings.Builder
	for _, p := range []struct {
		machine       string // as uname calls it
		first, static provisioners.DaemonProgram
	}{{"x86_64", programs.AMD64, programs.StaticAMD64}, {"aarch64", programs.ARM64, programs.StaticARM64}} {
		if p.first.URL == "" {
			p.first, p.static = p.static, provisioners.DaemonProgram{}
		}
		if p.first.URL == "" {
			continue
		}
		fmt.Fprintf(&cases, "%s)\n\turl=%s\n\tsum=%s\n\tstatic_url=%s\n\tstatic_sum=%s\n\t;;\n", p.machine,
			quote(p.first.URL), quote(p.first.SHA256), quote(p.static.URL), quote(p.static.SHA256))
	}
	return cases.String()
}

// quote makes any text one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
