package jobs

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/jobscript"
)

// wrongUseOf says what is wrong with a command line, and where to read of it.
func wrongUseOf(cmd *cobra.Command, format string, args ...any) error {
	return exit.UsageErrorf(cmd.CommandPath()+" --help", format, args...)
}

// sameOfSlurm are flags of run that sbatch calls otherwise.
var sameOfSlurm = map[string]string{"--after ": "--dependency ", "--checkpoint ": "--signal ",
	"--not-before ": "--begin "}

// tellAsSlurm is a failure of what run would have been given, by the flags and the help of sbatch.
func tellAsSlurm(cmd *cobra.Command, err error) error {
	own, ok := errors.AsType[*exit.Error](err)
	if !ok {
		return err
	}
	told := *own
	for ours, theirs := range sameOfSlurm {
		if rest, is := strings.CutPrefix(told.Message, ours); is {
			told.Message = theirs + rest
		}
	}
	if slices.Equal(told.Next, []string{helpOfRun}) {
		told.Next = []string{cmd.CommandPath() + " --help"}
	}
	return &told
}

var errScriptInput = exit.UsageErrorf(helpOfRun, "--input: the input of a script is the script itself")

// readScript is the request that a script makes, and the script.
func readScript(a *app.App, cmd *cobra.Command, name, text string, by jobscript.Reader) (*request, jobscript.Script,
	error) {
	by.Getenv = a.Getenv
	script, err := by.Read(text)
	if err != nil {
		return nil, script, wrongUseOf(cmd, "%s: %v", name, err)
	}
	if !script.Submission.Quiet {
		for _, note := range script.Notes {
			a.Say(cmd, "Note      %s: %s", name, note)
		}
	}
	for _, word := range script.Flags {
		if err := flags.CheckText(cmd, name+":", word); err != nil {
			return nil, script, err
		}
	}
	all, set := &request{}, pflag.NewFlagSet("script", pflag.ContinueOnError)
	all.bind(set)
	all.bindScript(set)
	err = set.Parse(script.Flags)
	switch {
	case err != nil:
		return nil, script, wrongUseOf(cmd, "%s: %v", name, rewordFlag(cmd, err))
	case set.NArg() > 0:
		return nil, script, wrongUseOf(cmd, "%s: %q is no flag: the command is the script itself", name, set.Arg(0))
	case all.input != "":
		return nil, script, errScriptInput
	case all.script != "":
		return nil, script, wrongUseOf(cmd, "%s: a script cannot name another one", name)
	}
	all.in.Input = script.Input
	if !set.Changed("slurm-env") {
		all.in.Slurm = script.Slurm
	}
	return all, script, nil
}
