package report

import (
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// The bounds of what a daemon may be told of its looks and reports. A report comes with a look, so that after twice the
// most there is one: well before the control plane holds the daemon for silent.
const (
	LeastLook   = time.Second
	MostLook    = 30 * time.Second
	LeastReport = 5 * time.Second
	MostReport  = 30 * time.Second
)

// isNews reports whether a look is to be told at once: how well a GPU is has changed since the healths that were told,
// or the driver reported an error.
func isNews(l contract.NodeLook, told string) bool {
	return healthsOf(l) != told ||
		slices.ContainsFunc(l.GPUs, func(g contract.LookGPU) bool { return len(g.XIDs) > 0 })
}

// healthsOf is how well the GPUs of a look are.
func healthsOf(l contract.NodeLook) string {
	var out strings.Builder
	for _, g := range l.GPUs {
		out.WriteString(g.UUID + " " + g.Health + "\n")
	}
	return out.String()
}
