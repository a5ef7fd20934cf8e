// Package app holds what the commands of a run share: the flags of all
// commands, the client of the chosen server, questions to a person, and
// messages besides data.
package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/jq"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
)

// World is what the commands reach outside of their arguments.
type World struct {
	Version string
	Getenv  func(string) string
	// IsSet reports whether a variable is there, though it may be empty. Nil: nobody asks.
	IsSet    func(string) bool
	Clock    clock.Clock
	Pause    func(context.Context, time.Duration) error // waits between two looks
	Terminal func(any) bool                             // whether a person sits behind a stream
	// Become makes another program of this process, which it names in argv[0]. It
	// returns only if that cannot be.
	Become func(argv []string) error
	// OpenSlurm reaches a Slurm cluster, without asking it anything yet.
	OpenSlurm func(SlurmAccess) (SlurmCluster, error)
	// SessionPatience is how long a command on a node is come back to whose connection was cut; 0: for as long as it
	// waits.
	SessionPatience time.Duration
	// SlowAfter is after how long a person is told that a server does not answer; 0: DefaultSlow.
	SlowAfter time.Duration
}

// App is one run of the command line.
type App struct {
	World
	Flags GlobalFlags
	// Planning and Explaining are set by the commands that make others show what they
	// would do, or explain it.
	Planning, Explaining bool
	Question             string                                // what a command would do for ever, and asks before
	Filter               *jq.Filter                            // of --jq; nil for all
	OnWait               func(time.Duration, contract.Problem) // says what is waited for
	OnSlow               func(server string)                   // says that it has not answered yet
	OnPlainKey           func(host string)                     // says that a key goes there unencrypted
	OnEmptyVariable      func(name string)                     // says that one is set, and counts for nothing
	saidPlainKey         bool
	saidEmpty            bool
}

// PreviewsOnly reports whether a command shows a plan instead of doing something.
func (a *App) PreviewsOnly() bool { return a.Planning || a.Flags.DryRun }

// GlobalFlags are the flags of every command.
type GlobalFlags struct {
	Server, Context, Output string
	Jq                      string
	IdempotencyKey          string
	NoHeaders, Quiet        bool
	NoColor, Wait           bool
	DryRun, Yes             bool
	Timeout                 flags.Span
}

// These annotate the commands that know the flags of these names. Who asks a
// command that does not know --dry-run for no change must not get one.
const (
	DryRuns = "dry-run"
	Waits   = "wait"
)

// Say tells the person something that is not data.
func (a *App) Say(cmd *cobra.Command, message string, args ...any) {
	if !a.Flags.Quiet {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), format.PlainLines(fmt.Sprintf(message, args...)))
	}
}

// SayNote says what somebody should know; nothing when that is empty.
func (a *App) SayNote(cmd *cobra.Command, text string) {
	if text != "" {
		a.Say(cmd, "Note      %s", text)
	}
}
