package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// The exit codes. Scripts choose by them.
const (
	ExitOK         = 0
	ExitFailed     = 1
	ExitUsage      = 2   // the command or a value in it is wrong
	ExitLogin      = 4   // no valid key
	ExitNotFound   = 5   //
	ExitConflict   = 6   // its state, or somebody else's change, does not allow it
	ExitPolicy     = 7   // quota, budget, cap or role
	ExitNoCapacity = 8   // later it may work
	ExitTimeout    = 9   // --wait gave up; what was waited for goes on
	ExitWaitFailed = 10  // what was waited for failed
	ExitInterrupt  = 130 // Ctrl-C
	ExitTerminated = 143 // SIGTERM
)

// Error is a failure with its exit code and what to run next.
type Error struct {
	Exit    int
	Message string
	Detail  []string // further lines, such as all blockers
	Next    []string // commands to run, most useful first
	Err     error    // the cause; may be nil
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// usageErrorf returns a usage error and the command to run next.
func usageErrorf(next, format string, args ...any) *Error {
	return &Error{Exit: ExitUsage, Message: fmt.Sprintf(format, args...), Next: []string{next}}
}

// Execute runs the command line, says on standard error what went wrong, and
// returns the exit code.
func Execute(ctx context.Context, root *cobra.Command) int {
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	if ctx.Err() != nil {
		var e *Error
		if errors.As(err, &e) && len(e.Next) > 0 {
			printError(root, e)
		}
		return interruptCode(ctx)
	}
	e := explainError(cmd, err)
	printError(root, e)
	return e.Exit
}

func printError(root *cobra.Command, e *Error) {
	w, label := root.ErrOrStderr(), "Error:"
	if root.Annotations[colours] != "" {
		label = "\x1b[31m" + label + "\x1b[0m"
	}
	_, _ = fmt.Fprintln(w, label+" "+plainLines(e.Message))
	for _, d := range e.Detail {
		_, _ = fmt.Fprintln(w, "  "+plainText(d))
	}
	for i, n := range e.Next {
		label := "  or:  "
		if i == 0 {
			label = "Next:  "
		}
		_, _ = fmt.Fprintln(w, label+plainText(n))
	}
}

// explainError finds the exit code of any error, and something to run next.
func explainError(cmd *cobra.Command, err error) *Error {
	var (
		own     *Error
		problem *client.Error
		config  *strictyaml.Error
		netErr  *net.OpError
		urlErr  *url.Error
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &problem):
		return fromProblem(cmd, problem.Problem)
	case errors.As(err, &config):
		return &Error{Exit: ExitUsage, Message: err.Error(), Next: []string{cmd.CommandPath() + " --help"}}
	case cobraUsage(err):
		return &Error{Exit: ExitUsage, Message: rewordComplaint(err.Error()), Next: suggestCommands(cmd, err)}
	case errors.As(err, &netErr), errors.As(err, &urlErr), errors.Is(err, context.DeadlineExceeded):
		return &Error{Exit: ExitFailed, Message: unreachableText(err), Err: err,
			Next: []string{"forewarm up", "forewarm status --server " + DefaultServer}}
	default:
		return &Error{Exit: ExitFailed, Message: err.Error(), Err: err, Next: []string{cmd.CommandPath() + " --help"}}
	}
}

// cobraUsage recognises cobra's own errors about the command line, which have no
// type.
func cobraUsage(err error) bool {
	for _, begins := range []string{"unknown command", "unknown flag", "unknown shorthand", "required flag", "accepts ",
		"requires at least",
		"invalid argument", "flag needs an argument", "if any flags in the group", "at least one of the flags",
		"bad flag syntax"} {
		if strings.HasPrefix(err.Error(), begins) {
			return true
		}
	}
	return false
}

// suggestCommands are the commands that a wrong word may have meant.
func suggestCommands(cmd *cobra.Command, err error) []string {
	var next []string
	if _, rest, ok := strings.Cut(err.Error(), "Did you mean this?\n"); ok {
		for name := range strings.FieldsSeq(rest) {
			next = append(next, cmd.CommandPath()+" "+name)
		}
	}
	return append(next, cmd.CommandPath()+" --help")
}

func flagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return noArgs(cmd, words) // the word before the flag is what is wrong
	}
	next := []string{cmd.CommandPath() + " --help"}
	if _, name, ok := strings.Cut(err.Error(), "unknown flag: --"); ok {
		if near, ok := strictyaml.Closest(name, flagNames(cmd)); ok {
			next = append([]string{cmd.CommandPath() + " --" + near}, next...)
		}
	}
	return &Error{Exit: ExitUsage, Message: rewordComplaint(err.Error()), Next: next}
}

// statuses map the status of a problem to an exit code; the others fail with
// ExitFailed. Codes of the same status are told apart where scripts must.
var (
	statuses = map[int]int{
		http.StatusBadRequest: ExitUsage, http.StatusMethodNotAllowed: ExitUsage,
		http.StatusRequestEntityTooLarge: ExitUsage,
		http.StatusUnsupportedMediaType:  ExitUsage, http.StatusUnprocessableEntity: ExitUsage,
		http.StatusUnauthorized: ExitLogin,
		http.StatusForbidden:    ExitPolicy, http.StatusNotFound: ExitNotFound, http.StatusConflict: ExitConflict,
		http.StatusGone:               ExitConflict,
		http.StatusPreconditionFailed: ExitConflict, http.StatusPreconditionRequired: ExitConflict,
	}
	codes = map[string]int{contract.CodeCapacityExhausted: ExitNoCapacity,
		contract.CodeIdempotencyKeyReused: ExitConflict}
)

// codeUnknown is of a field or parameter that names what is not there.
const codeUnknown = "unknown"

// exitOf is the exit code of a problem. What is not there has one code, whether
// an argument or a flag named it.
func exitOf(p contract.Problem) int {
	if slices.ContainsFunc(p.Errors, func(f contract.FieldError) bool { return f.Code == codeUnknown }) {
		return ExitNotFound
	}
	if code, ok := codes[p.Code]; ok {
		return code
	}
	if code, ok := statuses[p.Status]; ok {
		return code
	}
	return ExitFailed
}

// fallbackCommands is what to run when the server named no command.
func fallbackCommands(cmd *cobra.Command, exit int, code string) []string {
	if exit == ExitNotFound && code != contract.CodeNotFound {
		exit = ExitUsage // a flag names what is not there
	}
	switch exit {
	case ExitLogin:
		return []string{"forewarm login --key-file FILE"}
	case ExitNotFound, ExitConflict:
		return []string{listCommandFor(cmd)}
	case ExitPolicy:
		if code == contract.CodePermissionDenied {
			return []string{"forewarm whoami"}
		}
		return []string{"forewarm quota usage", "forewarm allocations list"}
	case ExitNoCapacity:
		return []string{"forewarm reservations list", "forewarm pools list"}
	case ExitUsage:
		return []string{cmd.CommandPath() + " --help"}
	default:
		return []string{"forewarm status"}
	}
}

// nounLists are the lists of what arguments name, where it is not the command's
// own noun.
var nounLists = map[string]string{"POOL": "forewarm pools list", "ORGANIZATION": "forewarm orgs list",
	"USER": "forewarm users list",
	"PLAN": "forewarm plan --help", "RESERVATION": "forewarm reservations list --all",
	"ALLOCATION": "forewarm allocations list --all"}

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
	"rsv_": "forewarm reservations list --all", "nod_": "forewarm nodes list --all"}

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
