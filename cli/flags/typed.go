package flags

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TypedLine is the command line that was typed, without some of its flags.
func TypedLine(cmd *cobra.Command, without ...string) string {
	line := []string{cmd.CommandPath()}
	for _, arg := range cmd.Flags().Args() {
		line = append(line, Quote(arg))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) {
			line = append(line, typedFlag(f))
		}
	})
	return strings.Join(line, " ")
}

// typedFlag is a flag with its value, or with each of a list.
func typedFlag(f *pflag.Flag) string {
	list, isList := f.Value.(pflag.SliceValue)
	if !isList {
		return FlagWords(f, f.Value.String())
	}
	values := list.GetSlice()
	if f.Value.Type() != "stringArray" { // which has commas between them
		return FlagWords(f, strings.Join(values, ","))
	}
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = FlagWords(f, value)
	}
	return strings.Join(words, " ")
}

// TypedWith is the command line that was typed with other values of some fields;
// empty when there are none, or not all of them have flags.
func TypedWith(cmd *cobra.Command, set map[string]any) string {
	var names, words []string
	for _, field := range slices.Sorted(maps.Keys(set)) {
		f := cmd.Flags().Lookup(strings.ReplaceAll(field, "_", "-"))
		if f == nil {
			return ""
		}
		names, words = append(names, f.Name), append(words, FlagWords(f, fmt.Sprint(set[field])))
	}
	if len(words) == 0 {
		return ""
	}
	return TypedLine(cmd, names...) + " " + strings.Join(words, " ")
}

// FlagWords gives a flag a value.
func FlagWords(f *pflag.Flag, value string) string {
	switch {
	case f.Value.Type() == "bool" && value == "true":
		return "--" + f.Name
	case f.Value.Type() == "bool":
		return "--" + f.Name + "=" + value
	default:
		return "--" + f.Name + " " + Quote(value)
	}
}

// Quote is a word as a shell takes it.
func Quote(word string) string {
	safe := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@,+=%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// CommandWith is the command line that was typed, with more flags.
func CommandWith(cmd *cobra.Command, more string) string {
	return fmt.Sprintf("%s … %s", cmd.CommandPath(), more)
}
