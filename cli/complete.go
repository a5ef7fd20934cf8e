package cli

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// completeWithin is how long a shell's user waits for names. Without them the
// shell completes nothing, which is no failure.
const completeWithin = 2 * time.Second

// nameLister lists what can stand for a placeholder, each as "name<TAB>what it is".
type nameLister func(context.Context, *client.Client) []string

// listCompletions makes completions of a list: of each thing its name, or its id.
func listCompletions[T any](read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error],
	of func(T) (name, about string)) nameLister {
	return func(ctx context.Context, api *client.Client) []string {
		var found []string
		for item, err := range read(api, ctx, client.Filter{}) {
			if err != nil {
				return found
			}
			n, about := of(item)
			found = append(found, format.Plain(n)+"\t"+format.Plain(about))
		}
		return found
	}
}

// placeholders are the arguments, as they are called in usage lines, and the
// flags whose values have names.
var placeholders = map[string]nameLister{
	"ALLOCATION": listCompletions((*client.Client).Allocations, func(x contract.Allocation) (string, string) {
		return cmp.Or(x.Name, x.ID), fmt.Sprintf("%s, %s", format.Count(x.GPUs, "GPU"), x.State)
	}),
	"RESERVATION": listCompletions((*client.Client).Reservations, func(x contract.Reservation) (string, string) {
		return cmp.Or(x.Name, x.ID),
			fmt.Sprintf("%s from %s, %s", format.Count(x.GPUs, "GPU"), format.Time(x.Start), x.State)
	}),
	"JOB": listCompletions(func(c *client.Client, ctx context.Context, f client.Filter) iter.Seq2[contract.Job, error] {
		return c.Jobs(ctx, client.JobFilter{Filter: f})
	}, func(x contract.Job) (string, string) {
		return cmp.Or(x.Name, x.ID), fmt.Sprintf("%s, %s", format.Count(x.GPUs, "GPU"), x.State)
	}),
	"SCHEDULE": listCompletions((*client.Client).Schedules, func(x contract.Schedule) (string, string) {
		return cmp.Or(x.Name, x.ID), x.RRule
	}),
	"POOL": listCompletions((*client.Client).Pools, func(x contract.Pool) (string, string) {
		return x.Name, x.Model
	}),
	"MODEL": listCompletions((*client.Client).Pools, func(x contract.Pool) (string, string) {
		return x.Model, "in " + x.Name
	}),
	"NODE": listCompletions((*client.Client).Nodes, func(x contract.Node) (string, string) {
		return x.ID, x.State
	}),
	"GPU": listCompletions(func(c *client.Client, ctx context.Context, f client.Filter) iter.Seq2[contract.GPU, error] {
		return c.GPUs(ctx, client.GPUFilter{Filter: f})
	}, func(x contract.GPU) (string, string) {
		return x.UUID, x.Model + ", " + x.State
	}),
	"ORGANIZATION": listCompletions((*client.Client).Organizations, func(x contract.Organization) (string, string) {
		return x.Name, format.Count(x.Limits.MaxGPUs, "GPU")
	}),
	"USER": listCompletions((*client.Client).Users, func(x contract.User) (string, string) {
		return x.Email, x.Role
	}),
	"KEY": listCompletions((*client.Client).Keys, func(x contract.Key) (string, string) {
		return x.ID, x.Name
	}),
	"PRIORITY": listPriorities,
}

// choices are the flags whose values are known here.
var choices = map[string][]string{
	"output": output.Formats, "class": {"guaranteed", "speculative"}, "workload": {"online", "batch"},
	"for-jobs": {"none", "mine", "organization"},
	"on-full":  {"fail", "queue"},
	"dst":      {"shift", "skip"}, "every": {"weekday", "weekend", "daily", "weekly", "monthly"},
	"kind": {contract.KindPerson, contract.KindAgent},
	"role": {"viewer", "member", "admin", "operator"}, "period": {"day", "month"},
}

// nouns are the flags whose values name things, beside flags.Nouns: of these, failures say the names by themselves.
var nouns = map[string]string{"partition": "POOL", "reservation": "RESERVATION", "after": "JOB", "near": "JOB",
	"apart-from": "JOB"}

// registerCompletions gives a command's arguments and flags their names.
func registerCompletions(a *app.App, c *cobra.Command) {
	if words := strings.Fields(c.Use); len(words) > 1 && c.ValidArgsFunction == nil {
		c.ValidArgsFunction = completeArguments(a, words[1:])
	}
	for flag, values := range choices {
		if c.LocalNonPersistentFlags().Lookup(flag) != nil || !c.HasParent() && flag == "output" {
			_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	if c.LocalNonPersistentFlags().Lookup("priority") != nil && c.Name() != "sbatch" { // whose own means a number
		_ = c.RegisterFlagCompletionFunc("priority", completePriorities(a))
	}
	known := maps.Clone(flags.Nouns)
	maps.Copy(known, nouns)
	for flag, noun := range known {
		if c.LocalNonPersistentFlags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string,
				_ string) ([]string, cobra.ShellCompDirective) {
				return fetchCompletions(a, cmd, noun), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
}

// completeArguments completes arguments by their placeholders.
func completeArguments(a *app.App, placeholders []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(placeholders) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []string
		for noun := range strings.SplitSeq(strings.Trim(placeholders[len(args)], "[]"), "|") {
			if noun == "DIR" || noun == "FILE" {
				return nil, cobra.ShellCompDirectiveDefault
			}
			found = append(found, fetchCompletions(a, cmd, noun)...)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePriorities completes the classes of the installation that the key's jobs may have, and, where it cannot be
// asked, those that are there unless it names others.
func completePriorities(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if found := fetchCompletions(a, cmd, "PRIORITY"); len(found) > 0 {
			return found, cobra.ShellCompDirectiveNoFileComp
		}
		const unknown = "\tunless your site names others"
		return []string{"low" + unknown, "normal" + unknown, "high" + unknown}, cobra.ShellCompDirectiveNoFileComp
	}
}

// listPriorities lists the classes that the key's jobs may have, which are none of a list in pages.
func listPriorities(ctx context.Context, api *client.Client) (found []string) {
	all, _ := api.Priorities(ctx) // of a server that knows none, none
	for _, x := range all {
		about := "priority class"
		if x.Default {
			about = "the default"
		}
		if x.Allowed {
			found = append(found, format.Plain(x.Name)+"\t"+about)
		}
	}
	return found
}

// fetchCompletions asks the server for names, and gives up soon.
func fetchCompletions(a *app.App, cmd *cobra.Command, noun string) []string {
	list, ok := placeholders[noun]
	if !ok {
		return nil
	}
	api, err := a.NewClient()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	found := list(ctx, api)
	slices.Sort(found)
	return slices.Compact(found)
}
