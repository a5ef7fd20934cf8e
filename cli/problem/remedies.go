package problem

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// addFix adds a way out: a command to run, the same one with other flags, or words.
func addFix(e *exit.Error, cmd *cobra.Command, f contract.Fix) {
	switch line := flags.TypedWith(cmd, f.Set); {
	case f.Command != "":
		e.Next = append(e.Next, f.Command)
	case line != "":
		e.Next = append(e.Next, line)
		fallthrough
	default:
		e.Detail = append(e.Detail, inFlags(cmd, InWords(f.Label)))
	}
}

// remedyCommands are the commands that a problem suggests.
func remedyCommands(cmd *cobra.Command, p contract.Problem) []string {
	var next []string
	switch p.Code {
	case contract.CodeETagMismatch:
		next = append(next, flags.TypedLine(cmd))
	case contract.CodeKeyCapExceeded, contract.CodeUserCapExceeded:
		next = append(next, "forewarm whoami")
	}
	for _, f := range p.Errors {
		if list, ok := whereNamed[lastName(f.Pointer)]; ok {
			next = append(next, list)
		}
	}
	switch {
	case cmd.Flags().Lookup("by") != nil:
		next = append(next, longestExtension(cmd, p)...)
	case p.Code != contract.CodePlanStale: // whose request is not in the command
		next = append(next, offerCommands(cmd, p.Offers)...)
	}
	if p.DecisionID != "" {
		next = append(next, "forewarm decisions show "+p.DecisionID)
	}
	return next
}

// longestExtension is by how much a lease can be made longer, as the server offers.
func longestExtension(cmd *cobra.Command, p contract.Problem) []string {
	for _, o := range p.Offers {
		if by := o.End.Sub(o.Start); by >= time.Minute {
			return []string{
				fmt.Sprintf("%s %s --by %s", cmd.CommandPath(), flags.Quote(cmd.Flags().Arg(0)), flagText(by))}
		}
	}
	return nil
}

// flagText is a duration as a flag takes it, to the minute below.
func flagText(d time.Duration) string {
	day := 24 * time.Hour
	text := ""
	if n := d / day; n > 0 {
		text = strconv.Itoa(int(n)) + "d"
	}
	if rest := (d % day).Truncate(time.Minute); rest > 0 || text == "" {
		text += format.Duration(rest)
	}
	return text
}

// whereNamed are the commands that show what a field could have been.
var whereNamed = map[string]string{"pool": "forewarm pools list", "model": "forewarm pools list",
	"region": "forewarm pools list -o wide", "min_gpu_memory_mib": "forewarm pools list",
	"min_node_memory_mib": "forewarm pools list -o wide",
	"organization_id":     "forewarm orgs list",
	"organization":        "forewarm orgs list", "user": "forewarm users list", "node": "forewarm nodes list",
	"user_id": "forewarm users list", "provisioner": "forewarm pools list -o wide"}
