package problem

import (
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/contract"
)

// statuses map the status of a problem to an exit code; the others fail with
// ExitFailed. Codes of the same status are told apart where scripts must.
var (
	statuses = map[int]int{
		http.StatusBadRequest: exit.Usage, http.StatusMethodNotAllowed: exit.Usage,
		http.StatusRequestEntityTooLarge: exit.Usage,
		http.StatusUnsupportedMediaType:  exit.Usage, http.StatusUnprocessableEntity: exit.Usage,
		http.StatusNotImplemented: exit.Usage,
		http.StatusUnauthorized:   exit.Login,
		http.StatusForbidden:      exit.Policy, http.StatusNotFound: exit.NotFound, http.StatusConflict: exit.Conflict,
		http.StatusGone:               exit.Conflict,
		http.StatusPreconditionFailed: exit.Conflict, http.StatusPreconditionRequired: exit.Conflict,
	}
	codes = map[string]int{contract.CodeCapacityExhausted: exit.NoCapacity,
		contract.CodeIdempotencyKeyReused: exit.Conflict}
)

// CodeUnknown is of a field or parameter that names what is not there.
const CodeUnknown = "unknown"

// exitOf is the exit code of a problem. What is not there has one code, whether
// an argument or a flag named it.
func exitOf(p contract.Problem) int {
	if slices.ContainsFunc(p.Errors, func(f contract.FieldError) bool { return f.Code == CodeUnknown }) {
		return exit.NotFound
	}
	if code, ok := codes[p.Code]; ok {
		return code
	}
	if code, ok := statuses[p.Status]; ok {
		return code
	}
	return exit.Failed
}

// fallbackCommands is what to run when the server named no command.
func fallbackCommands(cmd *cobra.Command, exitCode int, code string) []string {
	if exitCode == exit.NotFound && code != contract.CodeNotFound {
		exitCode = exit.Usage // a flag names what is not there
	}
	switch exitCode {
	case exit.Login:
		return []string{"forewarm login" + namedServer(cmd) + " --key-file FILE"}
	case exit.NotFound, exit.Conflict:
		return []string{listCommandFor(cmd)}
	case exit.Policy:
		if code == contract.CodePermissionDenied {
			return []string{"forewarm whoami"}
		}
		return []string{"forewarm quota usage", "forewarm allocations list"}
	case exit.NoCapacity:
		return []string{"forewarm reservations list", "forewarm pools list"}
	case exit.Usage:
		return []string{cmd.CommandPath() + " --help"}
	default:
		return []string{"forewarm status"}
	}
}

// namedServer repeats --server where it was given: a key is saved for one server.
func namedServer(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup("server"); f != nil && f.Changed {
		return " " + flags.FlagWords(f, f.Value.String())
	}
	return ""
}

// nounLists are the lists of what arguments name, where it is not the command's
// own noun.
var nounLists = map[string]string{"POOL": "forewarm pools list", "ORGANIZATION": "forewarm orgs list",
	"USER": "forewarm users list",
	"PLAN": "forewarm plan --help", "RESERVATION": "forewarm reservations list --all",
	"ALLOCATION": "forewarm allocations list --all", "JOB": "forewarm jobs list --all"}

// prefixOf is what an id begins with, up to its underscore; empty: it is none.
func prefixOf(text string) string {
	kind, _, ok := strings.Cut(text, "_")
	if !ok {
		return ""
	}
	return kind + "_"
}

// prefixLists are the lists of what ids of these forms name.
var prefixLists = map[string]string{"alc_": "forewarm allocations list --all",
	"rsv_": "forewarm reservations list --all", "nod_": "forewarm nodes list --all",
	"job_": "forewarm jobs list --all"}

// listCommandFor is the command that lists what another is about.
func listCommandFor(cmd *cobra.Command) string {
	for word := range strings.FieldsSeq(cmd.Use) {
		if list, ok := nounLists[strings.Trim(word, "[]")]; ok {
			return list
		}
	}
	if list, ok := prefixLists[prefixOf(cmd.Flags().Arg(0))]; ok {
		return list
	}
	if org := cmd.Flags().Lookup("org"); org != nil && org.Changed {
		return nounLists["ORGANIZATION"]
	}
	if cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	noun := cmd.Name()
	if n, ok := cmd.Annotations["noun"]; ok {
		noun = n
	}
	found, _, err := cmd.Root().Find([]string{noun, "list"})
	switch {
	case err != nil || found.Name() != "list":
		return "forewarm status"
	case found.Flags().Lookup("all") != nil:
		return found.CommandPath() + " --all"
	default:
		return found.CommandPath()
	}
}
