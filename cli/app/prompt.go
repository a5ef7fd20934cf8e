package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
)

// Confirm asks before something is destroyed. Without a terminal it fails with
// the flag to add to what was typed.
func (a *App) Confirm(cmd *cobra.Command, question string) error {
	a.Question = question
	if a.Flags.Yes || a.Flags.DryRun {
		return nil
	}
	again := flags.TypedLine(cmd) + " --yes"
	if !a.Terminal(cmd.InOrStdin()) || !a.Terminal(cmd.ErrOrStderr()) {
		return &exit.Error{Code: exit.Usage,
			Message: question + ": this needs a confirmation, and there is no terminal to ask at",
			Next:    []string{again}}
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s? [y/N] ", format.Plain(question))
	answer, err := ReadLine(cmd.Context(), cmd.InOrStdin())
	if cmd.Context().Err() != nil {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr())
		return &exit.Error{Code: exit.Interrupt, Message: "interrupted: nothing was changed", Next: []string{again},
			Err: err}
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return &exit.Error{Code: exit.Failed, Message: "nothing was changed", Next: []string{again}}
}

// ReadLine reads what a person types, up to the end of the line. It ends with
// the context: a read from a terminal knows nothing of signals, so it is left
// behind for the end of the program.
func ReadLine(ctx context.Context, in io.Reader) (string, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(in).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil // what there is, is the answer
		}
		read <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case l := <-read:
		return l.text, l.err
	}
}
