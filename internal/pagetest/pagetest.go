// Package pagetest reads the command lines that pages show people, so that programs can be held to them.
package pagetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// places are where people read command lines.
var places = []string{"README.md", "docs", "deploy", "bench/README.md", "provisioners/README.md"}

var (
	// afterCommand begins what a shell, or a reader, does not take as the command's arguments.
	afterCommand = regexp.MustCompile(` +#| [|>;] ?| && |\)|  +|;$| *[0-9]?>+ ?/|,$|\.$| *· `)
	shellWord    = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
	proseLine    = regexp.MustCompile(`^[a-z]+ (?:is|has|the|and|a|as|of|at|on)\b|^[a-z]+ →|^[a-z]+:`)
)

// Line is a command line as a page shows it.
type Line struct {
	Where string   // the page below the repository's root, and the line in it
	Args  []string // behind the program's name
}

// ReadLines finds the command lines of a program in all pages below the repository's root but the generated reference
// and the decisions, which speak of the past.
func ReadLines(t testing.TB, root, program string) []Line {
	t.Helper()
	shown := shownCommand(program)
	var all []Line
	take := func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "adr":
			return fs.SkipDir
		case filepath.Ext(path) != ".md" || entry.Name() == "cli.md":
			return nil
		}
		page, err := os.ReadFile(path) //nolint:gosec // our own files
		for _, at := range shown.FindAllSubmatchIndex(page, -1) {
			name, _ := filepath.Rel(root, path)
			where := fmt.Sprintf("%s:%d", name, 1+strings.Count(string(page[:at[2]]), "\n"))
			if args := split(string(page[at[2]:at[3]])); len(args) > 0 {
				all = append(all, Line{where, args})
			}
		}
		return err
	}
	for _, place := range places {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, place), take))
	}
	return all
}

// shownCommand finds a program's commands in a page: at the beginning of a line of code, at a prompt, behind another
// command, or between backquotes.
func shownCommand(program string) *regexp.Regexp {
	return regexp.MustCompile("(?m)(?:^ *(?:\\$ )?|`|&& |\\| |\\$\\(|sudo (?:-u [a-z]+ )?)" +
		"(?:[A-Z_]+=\\S+ )*(?:bin/|/usr/local/bin/)?" + program + " ((?:\\\\\n|[^`\n])+)")
}

// split splits a command line as a shell does; nil for prose, and for usage that stands for many commands.
func split(text string) (args []string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	if end := afterCommand.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	if proseLine.MatchString(text) {
		return nil
	}
	for _, word := range shellWord.FindAllString(text, -1) {
		if word == "…" || word == "|" || word == "&" {
			break
		}
		args = append(args, strings.NewReplacer(`'`, "", `"`, "").Replace(word))
	}
	return args
}

// Check returns an error where a command line names no command of a program, or gives it flags or numbers of arguments
// that it does not take.
func Check(root *cobra.Command, args []string) error {
	found, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	var unfinished *pflag.ValueRequiredError
	switch err := found.ParseFlags(rest); {
	case errors.Is(err, pflag.ErrHelp), errors.As(err, &unfinished): // a flag that is spoken of
		return nil
	case err != nil:
		return err
	}
	given := found.Flags().Args()
	if found.HasSubCommands() && !found.Runnable() && len(given) > 0 {
		return fmt.Errorf("%s has no command %q", found.CommandPath(), given[0])
	}
	if len(given) == 0 && len(args) < 4 { // a command that is spoken of
		return nil
	}
	return found.ValidateArgs(given)
}
