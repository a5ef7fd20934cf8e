// Package problem describes failures in terms of the command line: flags
// instead of fields, and commands to run instead of requests.
package problem

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// fromProblem tells a problem in the words of the command line: flags instead of
// fields, and commands to run instead of requests.
func fromProblem(cmd *cobra.Command, p contract.Problem) *exit.Error {
	e := &exit.Error{Code: exitOf(p), Message: problemHeadline(cmd, p), Err: &client.Error{Problem: p}}
	for _, f := range fieldsToTell(p) {
		if told := FieldText(cmd, f); !strings.Contains(e.Message, told) && !strings.Contains(p.Detail, f.Message) {
			e.Detail = append(e.Detail, told)
		}
	}
	for _, b := range p.Blockers {
		if !strings.Contains(p.Detail, b.Message) && !strings.Contains(e.Message, InWords(b.Message)) {
			e.Detail = append(e.Detail, inFlags(cmd, InWords(b.Message)))
		}
	}
	for _, r := range p.AtRisk {
		e.Detail =
			append(e.Detail,
				fmt.Sprintf("%s: %s from %s to %s", r.ID, format.Count(r.GPUs, "GPU"), format.Time(r.Start),
					format.Time(r.End)))
	}
	if p.Code == contract.CodePlanStale {
		for _, o := range p.Offers {
			e.Detail = append(e.Detail, "there would be a place for "+format.Offer(o))
		}
	}
	for _, f := range p.Fixes {
		if !f.Request && (p.Code != contract.CodeWindowTooLong || cmd.Flags().Lookup("by") == nil) {
			addFix(e, cmd, f)
		}
	}
	e.Next = append(e.Next, remedyCommands(cmd, p)...)
	if p.RequestID != "" && e.Code == exit.Failed {
		e.Detail = append(e.Detail, "in the server's log: "+p.RequestID)
	}
	for _, next := range fallbackCommands(cmd, e.Code, p.Code) {
		if !slices.Contains(e.Next, next) {
			e.Next = append(e.Next, next)
		}
	}
	return e
}

// fieldsToTell are the fields that are wrong; none where the headline says it all.
func fieldsToTell(p contract.Problem) []contract.FieldError {
	if p.Code == contract.CodeIdempotencyKeyReused {
		return nil
	}
	return p.Errors
}

// movingTime says where a time is counted from now: typed again with the same key, it
// is another time, and so another request.
func movingTime(cmd *cobra.Command) string {
	for _, name := range []string{"at", "not-before", "not-after"} {
		f := cmd.LocalFlags().Lookup(name)
		if f != nil && f.Changed && (f.Value.String() == "now" || strings.HasPrefix(f.Value.String(), "in ")) {
			return fmt.Sprintf(": --%s %s is another time whenever it is typed; write the time itself", name,
				flags.Quote(f.Value.String()))
		}
	}
	return ""
}

// problemHeadline is what happened, in a sentence.
func problemHeadline(cmd *cobra.Command, p contract.Problem) string {
	detail := inFlags(cmd, InWords(p.Detail))
	switch p.Code {
	case "":
		return "the service there is not Forewarm, or something in front of it is broken: " + p.Title
	case contract.CodeValidationFailed, contract.CodeInvalidParameter:
		if len(p.Errors) > 0 {
			return FieldText(cmd, p.Errors[0])
		}
	case contract.CodeWindowInPast, contract.CodeMalformedJSON:
		return detail
	case contract.CodeETagMismatch:
		return "somebody else changed it meanwhile; nothing was done"
	case contract.CodeIdempotencyKeyReused:
		return "--idempotency-key was used before, for something else" + movingTime(cmd)
	case contract.CodeNameTaken:
		if n := cmd.Flags().Arg(0); n != "" && !strings.Contains(detail, n) {
			return fmt.Sprintf("the name %q is taken", n)
		}
	case contract.CodeWindowTooLong:
		for _, b := range p.Blockers {
			if cmd.Flags().Lookup("by") != nil && strings.Contains(b.Message, "lease") {
				return "The lease would be too long: " + InWords(b.Message)
			}
		}
	case contract.CodeNotFound:
		if what := missingThing(cmd); what != "" && (detail == "" || strings.HasPrefix(detail, "It does not exist")) {
			return "There is no " + what + "."
		}
		return detail
	}
	if detail == "" {
		return p.Title
	}
	return p.Title + ": " + detail
}

// missingThing is what a command was told to look for.
func missingThing(cmd *cobra.Command) string {
	words, args := strings.Fields(cmd.Use), cmd.Flags().Args()
	var all []string
	for i, arg := range args {
		if i+1 < len(words) && strings.ToUpper(words[i+1]) == words[i+1] && words[i+1] != "METHOD" &&
			words[i+1] != "PATH" && words[i+1] != "NAME" {
			noun := strings.ReplaceAll(strings.ToLower(strings.Trim(words[i+1], "[]")), "|", " or ")
			all = append(all, fmt.Sprintf("%s %q", noun, arg))
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(flags.Nouns)) {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			all = append(all, fmt.Sprintf("%s %q", strings.ToLower(flags.Nouns[flag]), f.Value.String()))
		}
	}
	return strings.Join(all, ", or no ")
}
