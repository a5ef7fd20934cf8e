package jobs

import (
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
)

// tellUnsent says that what somebody pipes into this command goes nowhere. It is not read unasked: under cron, CI or
// ssh the standard input is often a pipe that never ends, and the submission would wait for it.
func (r *request) tellUnsent(a *app.App, cmd *cobra.Command) {
	switch {
	case r.input != "" || r.detach || !brings(cmd.InOrStdin()):
	case r.script != "":
		a.SayNote(cmd, "standard input is not sent: the input of a script is the script itself; --file sends others along")
	default:
		a.SayNote(cmd, "standard input is not sent: --input - sends it")
	}
}

// brings reports whether there may be something to read that somebody has put there: a pipe, or a file that is not
// empty.
func brings(in io.Reader) bool {
	f, ok := in.(fs.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode()&fs.ModeNamedPipe != 0 || info.Mode().IsRegular() && info.Size() > 0)
}
