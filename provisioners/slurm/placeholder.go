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
	} {
		fmt.Fprintf(&settings, "%s=%s\n", setting[0], shellQuote(setting[1]))
	}
	fmt.Fprintf(&settings, "probe() {\n\t%s%s\n}\n", probeLimit, strings.Join(words, " "))
	return strings.Replace(placeholder, settingsMark, settings.String(), 1)
}
