package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// shownCommand finds this program's commands in a page: at the beginning of a line of code, at
// a prompt, behind another command, or between backquotes.
var shownCommand = regexp.MustCompile("(?m)(?:^ *(?:\\$ )?|`|&& |\\| |\\$\\(|sudo (?:-u [a-z]+ )?)" +
	"(?:[A-Z_]+=\\S+ )*(?:bin/|/usr/local/bin/)?forewarm ((?:\\\\\n|[^`\n])+)")

var (
	// afterCommand begins what a shell, or a reader, does not take as the command's arguments.
	afterCommand = regexp.MustCompile(` +#| [|>;] ?| && |\)|  +|;$| *[0-9]?>+ ?/|,$|\.$| *· `)
	shellWord    = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
	proseLine    = regexp.MustCompile(`^[a-z]+ (?:is|has|the|and|a|as|of|at|on)\b|^[a-z]+ →|^[a-z]+:`)
)

// A shownLine is a command line as a page shows it.
type shownLine struct {
	where string
	args  []string
}

// readShownLines finds the command lines of this program in all pages but the generated reference and the
// decisions, which speak of the past.
func readShownLines(t *testing.T) []shownLine {
	t.Helper()
	var all []shownLine
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
		for _, at := range shownCommand.FindAllSubmatchIndex(page, -1) {
			where := fmt.Sprintf("%s:%d", strings.TrimPrefix(path, "../../"), 1+strings.Count(string(page[:at[2]]), "\n"))
			if args := splitShown(string(page[at[2]:at[3]])); len(args) > 0 {
				all = append(all, shownLine{where, args})
			}
		}
		return err
	}
	for _, place := range []string{"README.md", "docs", "deploy", "bench/README.md", "provisioners/README.md"} {
		require.NoError(t, filepath.WalkDir("../../"+place, take))
	}
	return all
}

// splitShown splits a command line as a shell does; nil for prose, and for usage that stands for many commands.
func splitShown(text string) (args []string) {
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

// Every command line of the pages names a command that there is, with flags and as many arguments as it takes.
func TestCommandLinesOfPages(t *testing.T) {
	t.Parallel()
	lines := readShownLines(t)
	require.Greater(t, len(lines), 80)
	for _, line := range lines {
		require.NoError(t, parseShown(line.args), "%s: forewarm %s", line.where, strings.Join(line.args, " "))
	}
}

// A page that shows what is not there is found.
func TestWrongCommandLinesAreFound(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"pools create a --gpu 2", "status now", "reservations show a b",
		"explain a b c d"} {
		require.Error(t, parseShown(strings.Fields(wrong)), wrong)
	}
}

func parseShown(args []string) error {
	found, rest, err := newRoot().Find(args)
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
