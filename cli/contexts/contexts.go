// Package contexts has the commands about saved servers and the keys for them.
package contexts

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
)

// savedContext is a context as it is listed, without its key.
type savedContext struct {
	Name    string `json:"name"`
	Server  string `json:"server"`
	Current bool   `json:"current"`
}

var contextView = output.View[savedContext]{
	Name: func(x savedContext) string { return x.Name },
	Columns: []output.Column[savedContext]{
		{Head: "NAME", Cell: func(x savedContext) string { return x.Name }},
		{Head: "SERVER", Cell: func(x savedContext) string { return x.Server }},
		{Head: "CURRENT", Cell: func(x savedContext) string { return format.YesNo(x.Current) }},
	},
}

// NewCommand is the command contexts.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("contexts", "See and choose saved servers", newListCommand(a), newUseCommand(a),
		newDeleteCommand(a))
}

func loadSaved(a *app.App) (string, contextfile.File, error) {
	path, err := contextfile.Path(a.Getenv)
	if err != nil {
		return "", contextfile.File{}, err
	}
	f, err := contextfile.Load(path)
	return path, f, err
}
