package exit

import (
	"fmt"
	"io"
)

// Meanings document the exit codes, for people and in the reference.
var Meanings = []struct {
	Code int
	Text string
}{
	{OK, "done"},
	{Failed, "it failed, the server could not be reached, or the question was answered with no"},
	{Usage, "the command, or a value in it, is wrong"},
	{Login, "there is no valid key: forewarm login"},
	{NotFound, "there is no such thing, or the key may not see it"},
	{Conflict, "its state, or somebody else's change, does not allow it"},
	{Policy, "a quota, a budget, a cap or the key's role does not allow it"},
	{NoCapacity, "there is no room now, but there may be later"},
	{Timeout, "--timeout has passed; what the command waited for continues"},
	{WaitFailed, "what the command waited for failed"},
	{NotStarted, "exec and run: the command could not be started; one that ran to its end gives its own code"},
	{Interrupt, "interrupted by Ctrl-C; up, server and worker then stop cleanly, with 0"},
	{Terminated, "ended by SIGTERM"},
}

// WriteMeanings writes a table of the exit codes.
func WriteMeanings(w io.Writer) {
	for _, e := range Meanings {
		_, _ = fmt.Fprintf(w, "%5d  %s\n", e.Code, e.Text)
	}
}
