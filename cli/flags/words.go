package flags

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/exit"
)

// CheckWords refuses what no command can send as it was typed: an argument of nothing but blanks, which would name
// another thing than the one that was meant, and bytes that are not text.
func CheckWords(cmd *cobra.Command, args []string) error {
	if slices.Contains([]string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, cmd.CalledAs()) {
		return nil // a shell completes what is not written yet
	}
	if err := checkNamed(cmd, args); err != nil {
		return err
	}
	for _, arg := range args {
		if err := CheckText(cmd, "the argument", arg); err != nil {
			return err
		}
	}
	var failed error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if failed == nil && f.Name != wrapped {
				failed = CheckText(cmd, "--"+f.Name, value)
			}
		}
	})
	return failed
}

// wrapped is the flag whose value is a script, which travels as bytes.
const wrapped = "wrap"

// checkNamed refuses an empty argument by the name that the usage line has for it. What belongs to a program that is
// run elsewhere may be empty.
func checkNamed(cmd *cobra.Command, args []string) error {
	if at := cmd.ArgsLenAtDash(); at > 0 {
		args = args[:at]
	}
	names := argumentNames(cmd.Use)
	for i, arg := range args {
		if i >= len(names) && len(names) > 0 {
			names = append(names, names[len(names)-1])
		}
		name := "the argument"
		if i < len(names) {
			name = names[i]
		}
		if strings.TrimSpace(arg) == "" && name != "ARGUMENT" {
			return exit.UsageErrorf(cmd.CommandPath()+" --help", "%s is empty", name)
		}
	}
	return nil
}

// argumentNames are what a usage line calls the arguments, in their order.
func argumentNames(use string) (names []string) {
	if _, command, ok := strings.Cut(use, " -- "); ok {
		use = "run " + command
	}
	for _, word := range strings.Fields(use)[1:] {
		bare := strings.TrimRight(strings.TrimLeft(word, "({"), "})….")
		if strings.HasPrefix(bare, "[") && strings.HasSuffix(strings.TrimRight(bare, "."), "]") {
			bare = strings.Trim(bare, "[]….")
		}
		switch {
		case strings.HasPrefix(strings.TrimLeft(bare, "["), "-"):
			return names
		case bare != "" && bare != "FLAG" && bare != "|":
			names = append(names, bare)
		}
	}
	return names
}

// CheckText refuses bytes that are not UTF-8: a request is text, in which they would be others.
func CheckText(cmd *cobra.Command, what, text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	return exit.UsageErrorf(cmd.CommandPath()+" --help", "%s %+q is not UTF-8, and would not arrive as it is: %s", what,
		text, carriers(cmd))
}

// carriers are what of a command carries any bytes.
func carriers(cmd *cobra.Command) string {
	switch {
	case cmd.Name() == "exec":
		return "its standard input and forewarm cp carry any bytes"
	case cmd.Flags().Lookup(wrapped) != nil:
		return "the text of the script carries any bytes"
	case cmd.Flags().Lookup("script") != nil && cmd.Flags().Lookup("input") != nil:
		return "a script (--script), its standard input (--input) and its files (--file) carry any bytes"
	}
	return "write it in UTF-8"
}
