package jobs

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// changeAll is a request that changes the next jobs of a set.
type changeAll func(*client.Client, context.Context, contract.JobSet) (contract.JobsChanged, error)

// setChanged is what became of the jobs of an array, or of one's own.
type setChanged struct {
	ArrayID string `json:"array_id,omitempty"`
	contract.JobsChanged
}

var setView = output.View[setChanged]{
	Name: setChanged.name,
	Columns: []output.Column[setChanged]{
		{Head: "JOBS OF", Cell: setChanged.name},
		{Head: "CHANGED", Right: true, Cell: func(x setChanged) string { return strconv.Itoa(x.Changed) }},
		{Head: "UNCHANGED", Right: true, Cell: func(x setChanged) string { return strconv.Itoa(x.Unchanged) }},
		{Head: "REFUSED", Right: true, Cell: func(x setChanged) string { return strconv.Itoa(x.Refused) }},
	},
}

func (x setChanged) name() string { return nameOfSet(contract.JobSet{ArrayID: x.ArrayID}) }

func (x setChanged) text() string {
	return fmt.Sprintf("%s changed, %d unchanged, %d refused", format.Count(x.Changed, "job"), x.Unchanged, x.Refused)
}

// nameOfSet is what a set is called.
func nameOfSet(set contract.JobSet) string { return cmp.Or(set.ArrayID, "yours") }

// changeSet changes all of a set, request after request, and says on a terminal how far it is. What it returns beside
// an error was done before that.
func (s steering) changeSet(a *app.App, cmd *cobra.Command, api *client.Client, set contract.JobSet) (
	all contract.JobsChanged, err error) {
	all.Refusals = []contract.JobRefusal{}
	p := setProgress{app: a, cmd: cmd}
	defer p.end()
	for n := 1; ; n++ {
		got, err := s.makeAll(api, contextOfPart(a, cmd, n), set)
		if err != nil {
			return all, err
		}
		all = addChanged(all, got)
		if set.Cursor = got.NextCursor; set.Cursor == "" {
			break
		}
		p.show(all)
	}
	p.end()
	for _, r := range all.Refusals {
		a.Say(cmd, "%s: %s", r.ID, r.Message)
	}
	switch {
	case all.Refused > 0:
		return all, &exit.Error{Code: exit.Conflict, Message: format.Count(all.Refused, "job") + " could not be changed",
			Next: []string{"forewarm jobs list" + flagsOfSet(set)}}
	case all.Changed == 0 && set.ArrayID != "":
		return all, s.noneOf(set)
	}
	return all, nil
}

// contextOfPart gives each request of a set a key of its own, where somebody chose one.
func contextOfPart(a *app.App, cmd *cobra.Command, n int) context.Context {
	ctx := a.WithIdempotencyKey(cmd.Context())
	if a.Flags.IdempotencyKey == "" || n == 1 {
		return ctx
	}
	return client.WithIdempotencyKey(ctx, fmt.Sprintf("%s.%d", a.Flags.IdempotencyKey, n))
}

func addChanged(x, y contract.JobsChanged) contract.JobsChanged {
	return contract.JobsChanged{Changed: x.Changed + y.Changed, Unchanged: x.Unchanged + y.Unchanged,
		Refused: x.Refused + y.Refused, Refusals: append(x.Refusals, y.Refusals...)}
}

// noneOf says that there is nothing to be done to an array.
func (s steering) noneOf(set contract.JobSet) error {
	return &exit.Error{Code: exit.NotFound, Message: "no job of the array " + set.ArrayID + " is " + s.are,
		Next: []string{"forewarm jobs list --all" + flagsOfSet(set)}}
}

// flagsOfSet has jobs list show a set.
func flagsOfSet(set contract.JobSet) string {
	if set.Mine {
		return " --mine"
	}
	return " --array " + flags.Quote(set.ArrayID)
}

// setProgress is a line on a terminal that says how far a large set is.
type setProgress struct {
	app  *app.App
	cmd  *cobra.Command
	told bool
}

func (p *setProgress) show(all contract.JobsChanged) {
	w := p.cmd.ErrOrStderr()
	if p.app.Flags.Quiet || !p.app.Terminal(w) {
		return
	}
	p.told = true
	_, _ = fmt.Fprintf(w, "\r\x1b[K◐ %s: %s so far", strings.ToLower(p.cmd.Name()), format.Count(all.Changed, "job"))
}

func (p *setProgress) end() {
	if p.told {
		_, _ = fmt.Fprint(p.cmd.ErrOrStderr(), "\r\x1b[K")
	}
	p.told = false
}
