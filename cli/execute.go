package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/problem"
)

// Execute runs the command line, says on standard error what went wrong, and
// returns the exit code.
func Execute(ctx context.Context, root *cobra.Command) int {
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.OK
	}
	if status, ok := errors.AsType[*exit.StatusError](err); ok {
		return status.Code
	}
	if ctx.Err() != nil {
		var e *exit.Error
		if errors.As(err, &e) && len(e.Next) > 0 {
			printError(root, e)
		}
		return exit.InterruptCode(ctx)
	}
	e := problem.Explain(cmd, err)
	printError(root, e)
	return e.Code
}

func printError(root *cobra.Command, e *exit.Error) {
	w, label := root.ErrOrStderr(), "Error:"
	if root.Annotations[colours] != "" {
		label = "\x1b[31m" + label + "\x1b[0m"
	}
	_, _ = fmt.Fprintln(w, label+" "+format.PlainLines(e.Message))
	for _, d := range e.Detail {
		_, _ = fmt.Fprintln(w, "  "+format.Plain(d))
	}
	for i, n := range e.Next {
		label := "  or:  "
		if i == 0 {
			label = "Next:  "
		}
		_, _ = fmt.Fprintln(w, label+format.Plain(n))
	}
}
