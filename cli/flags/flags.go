// Package flags reads the arguments and flags of commands, and writes command
// lines as a person would type them.
package flags

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// Names are the names of a command's flags.
func Names(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// Need fails unless every flag was given, and names all that were not.
func Need(cmd *cobra.Command, flags ...string) error {
	var missing []string
	for _, name := range flags {
		if !cmd.Flags().Changed(name) {
			missing = append(missing, "--"+name)
		}
	}
	switch n := len(missing); n {
	case 0:
		return nil
	case 1:
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "%s is missing", missing[0])
	default:
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "%s and %s are missing", strings.Join(missing[:n-1], ", "),
			missing[n-1])
	}
}

// Nouns are the flags whose values are names of things.
var Nouns = map[string]string{"pool": "POOL", "model": "MODEL", "org": "ORGANIZATION", "user": "USER",
	"node": "NODE"}

// SetIfGiven points a field of a patch at a flag's value if the flag was given.
func SetIfGiven[T any](cmd *cobra.Command, flag string, field **T, value T) {
	if cmd.Flags().Changed(flag) {
		*field = &value
	}
}

// ParseDollars reads an amount, with or without its sign; the server refuses what is none.
func ParseDollars(text string) contract.Money {
	return contract.Money{Amount: strings.TrimPrefix(text, "$"), Currency: contract.Currency}
}

// ParseVariables reads variables of an environment, each as NAME=VALUE; flag is where they come from.
func ParseVariables(cmd *cobra.Command, flag string, all []string) (map[string]string, error) {
	out := map[string]string{}
	for _, v := range all {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, exit.UsageErrorf(cmd.CommandPath()+" --help", "--%s %s: must be NAME=VALUE", flag, v)
		}
		if err := CheckText(cmd, "--"+flag, v); err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

// AnyChanged reports whether any flag was given besides one.
func AnyChanged(f *pflag.FlagSet, except string) bool {
	given := false
	f.VisitAll(func(flag *pflag.Flag) { given = given || flag.Changed && flag.Name != except })
	return given
}

// SetLimit reads a number, or none.
func SetLimit(cmd *cobra.Command, flag, text string, to **int64) error {
	if text == "none" {
		*to = nil
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "--%s %q is neither a number nor none", flag, text)
	}
	*to = &n
	return nil
}
