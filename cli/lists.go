package cli

import (
	"context"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
)

// lists is a method of the SDK that goes through a collection.
type lists[T any] = func(context.Context, client.Filter) iter.Seq2[T, error]

// newListCommand is the list command of things that can not be narrowed.
func newListCommand[T any](a *app, noun string, v view[T], read func(*client.Client, context.Context, client.Filter) iter.Seq2[T,
	error]) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List " + noun, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runList(a, cmd, v, read, client.Filter{}) },
	}
}

// newPooledListCommand is the list command of things in pools that end, which shows those that
// have not.
func newPooledListCommand[T any](a *app, noun string, v view[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error]) *cobra.Command {
	c, f := newLiveListCommand(a, noun, v, read, "also those that are over")
	c.Flags().StringSliceVar(&f.State, "state", nil, "only those in any of these states")
	c.Flags().StringVar(&f.Pool, "pool", "", "only those of this pool")
	return c
}

// newLiveListCommand is the list command of things that end, which shows those that have not,
// with the filter that its flags set; more says what --all adds.
func newLiveListCommand[T any](a *app, noun string, v view[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error],
	more string) (*cobra.Command, *client.Filter) {
	f := &client.Filter{}
	c := newListCommand(a, noun, v, read)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return runList(a, cmd, v, read, *f) }
	c.Flags().BoolVar(&f.All, "all", false, more)
	return c, f
}

func runList[T any](a *app, cmd *cobra.Command, v view[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error], f client.Filter) error {
	api, err := a.newClient()
	if err != nil {
		return err
	}
	items, err := client.All(read(api, cmd.Context(), f))
	if err != nil {
		return err
	}
	if v.order != nil {
		slices.SortStableFunc(items, v.order)
	}
	return showList(a, cmd, v, items)
}
