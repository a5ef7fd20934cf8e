// Package listing has the list commands of most nouns.
package listing

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
)

// NewCommand is the list command of things that can not be narrowed.
func NewCommand[T any](a *app.App, noun string, v output.View[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T,
		error]) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List " + noun, Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(a, cmd, v, read, client.Filter{}) },
	}
	AddLimit(c)
	return c
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

// Run reads a collection, as much of it as is wanted, and shows it.
func Run[T any](a *app.App, cmd *cobra.Command, v output.View[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error], f client.Filter) error {
	limit, err := limitOf(cmd)
	if err != nil {
		return err
	}
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	f.PageSize = largestPage
	if limit > 0 {
		f.PageSize = min(limit, largestPage)
	}
	return output.Stream(a, cmd, v, first(read(api, cmd.Context(), f), limit))
}

// largestPage is the largest page of a list that the server gives.
const largestPage = 200

// AddLimit adds the flag that bounds a list.
func AddLimit(c *cobra.Command) {
	c.Flags().Int("limit", 0, "show only so many, the first as they are listed; 0 shows all")
}

// limitOf is how many are wanted; zero: all.
func limitOf(cmd *cobra.Command) (int, error) {
	if cmd.Flags().Lookup("limit") == nil {
		return 0, nil
	}
	n, err := cmd.Flags().GetInt("limit")
	if err == nil && n < 0 {
		err = exit.UsageErrorf(cmd.CommandPath()+" --help", "--limit %d must be at least 0, which means all", n)
	}
	return n, err
}

// first are the first of a list; zero: all.
func first[T any](all iter.Seq2[T, error], limit int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for x, err := range all {
			if n++; !yield(x, err) || n == limit {
				return
			}
		}
	}
}
