// Package listing has the list commands of most nouns.
package listing

import (
	"context"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
)

// NewCommand is the list command of things that can not be narrowed.
func NewCommand[T any](a *app.App, noun string, v output.View[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T,
		error]) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List " + noun, Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(a, cmd, v, read, client.Filter{}) },
	}
}

// NewPooledCommand is the list command of things in pools that end, which shows those that
// have not.
func NewPooledCommand[T any](a *app.App, noun string, v output.View[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error]) *cobra.Command {
	c, f := NewLiveCommand(a, noun, v, read, "include those that have ended")
	c.Flags().StringSliceVar(&f.State, "state", nil, "only those in any of these states")
	c.Flags().StringVar(&f.Pool, "pool", "", "only those in this pool")
	return c
}

// NewLiveCommand is the list command of things that end, which shows those that have not,
// with the filter that its flags set; more says what --all adds.
func NewLiveCommand[T any](a *app.App, noun string, v output.View[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error],
	more string) (*cobra.Command, *client.Filter) {
	f := &client.Filter{}
	c := NewCommand(a, noun, v, read)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return Run(a, cmd, v, read, *f) }
	c.Flags().BoolVar(&f.All, "all", false, more)
	return c, f
}

// Run reads a whole collection and shows it.
func Run[T any](a *app.App, cmd *cobra.Command, v output.View[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error], f client.Filter) error {
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	items, err := client.All(read(api, cmd.Context(), f))
	if err != nil {
		return err
	}
	if v.Order != nil {
		slices.SortStableFunc(items, v.Order)
	}
	return output.List(a, cmd, v, items)
}
