package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
)

// showWithheld shows what a dry run held back, and ends well.
func showWithheld(a *app.App, cmd *cobra.Command, err error) error {
	var held *app.WithheldRequest
	if !errors.As(err, &held) {
		return err
	}
	a.Say(cmd, "Dry run: nothing was changed, and the server was not asked whether it would agree.")
	return output.Text(a, cmd, held.Path, held, func(w io.Writer) {
		_, _ = fmt.Fprintln(w, "Would "+intentText(a, cmd, held))
		for _, l := range bodyLines(held.Body, "") {
			_, _ = fmt.Fprintf(w, "    %-22s %s\n", l[0], l[1])
		}
	})
}

// things are what the commands of a group are about, one of each.
var things = map[string]string{"nodes": "node", "schedules": "schedule", "key": "key", "users": "user",
	"orgs": "organization", "pools": "pool",
	"prewarm": "pre-warming", "recovery": "recovery"}

// intentText says what a command would do, as far as it knows itself.
func intentText(a *app.App, cmd *cobra.Command, held *app.WithheldRequest) string {
	thing, ok := things[cmd.Parent().Name()]
	switch {
	case a.Question != "":
		return strings.ToLower(a.Question[:1]) + a.Question[1:]
	case !ok:
		return strings.Join([]string{cmd.Name(), held.Method, held.Path}, " ")
	}
	return strings.Join(append([]string{strings.ReplaceAll(cmd.Name(), "caps", "cap"), thing}, cmd.Flags().Args()...),
		" ")
}

// bodyLines are the fields of a body and their values, in words.
func bodyLines(body json.RawMessage, of string) (lines [][2]string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		value := fields[field]
		words := strings.TrimSpace(of + " " + strings.ReplaceAll(field, "_", " "))
		var n int64
		switch text := format.Value(value); {
		case text == "-":
		case strings.HasPrefix(text, "{"):
			lines = append(lines, bodyLines(value, words)...)
		case strings.HasSuffix(field, "_seconds") && json.Unmarshal(value, &n) == nil:
			lines = append(lines, [2]string{strings.TrimSuffix(words, " seconds"),
				format.Duration(time.Duration(n) * time.Second)})
		default:
			lines = append(lines, [2]string{words, text})
		}
	}
	return lines
}
