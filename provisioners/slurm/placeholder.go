package slurm

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/provisioners"
)

//go:embed placeholder.sh
var placeholder string

// settingsMark is the line of placeholder.sh that the settings replace.
const settingsMark = "# SETTINGS\n"

// probeLimit bounds one run of the probe: a broken driver makes nvidia-smi hang.
const probeLimit = "timeout -k 5 30 "

// daemonCommand starts the node's daemon with its token as input and its state in a folder
// that the script has made.
func (c *Cluster) daemonCommand(spec provisioners.Spec) string {
	if spec.Daemon.URL == "" || !c.StartsDaemons() {
		return ":"
	}
	words := []string{c.config.Daemon.Program, "run", "--url", spec.Daemon.URL, "--node", spec.NodeID, "--token-file", "-"}
	if c.config.Daemon.SharedUser {
		words = append(words, "--shared-user")
	}
	words = append(words, c.config.Daemon.Args...)
	for i, word := range words {
		words[i] = shellQuote(word)
	}
	return strings.Join(words, " ") + ` --state-dir "$folder/state"`
}

// placeholderScript is the placeholder for one machine. Every value is quoted, so that none
// can be anything but a value.
func (c *Cluster) placeholderScript(token string, spec provisioners.Spec, offer Offer) string {
	words := make([]string, len(c.config.Probe))
	for i, word := range c.config.Probe {
		words[i] = shellQuote(word)
	}
	var settings strings.Builder
	for _, setting := range [][2]string{
		{"comment", c.formatComment(tagsOf(token, spec))},
		{"gpus", strconv.Itoa(offer.GPUs)},
		{"bin_dir", c.config.BinDir},
		{"probe_program", c.config.Probe[0]},
		{"probe_timeout", strconv.Itoa(int(c.config.ProbeTimeout.Seconds()))},
		{"allow_unprobed", strconv.FormatBool(c.config.AllowUnprobed)},
		{"check_every", strconv.Itoa(int(c.config.CheckEvery.Seconds()))},
		{"join_token", spec.Daemon.Token.Reveal()},
	} {
		fmt.Fprintf(&settings, "%s=%s\n", setting[0], shellQuote(setting[1]))
	}
	fmt.Fprintf(&settings, "probe() {\n\t%s%s\n}\n", probeLimit, strings.Join(words, " "))
	fmt.Fprintf(&settings, "daemon() {\n\t%s\n}\n", c.daemonCommand(spec))
	return strings.Replace(placeholder, settingsMark, settings.String(), 1)
}
