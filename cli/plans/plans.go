// Package plans shows what a command would do, and then does exactly that: plan
// and apply.
package plans

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
)

// NewCommand holds the commands that change something, each made to show what it would
// change instead.
func NewCommand(a *app.App, verbs ...*cobra.Command) *cobra.Command {
	c := app.NewGroupCommand("plan", "See what a command would do, then apply exactly that", newShowCommand(a))
	c.Long = "See what a command would do, then apply exactly that.\n\n" + planText
	for _, verb := range verbs {
		c.AddCommand(planInstead(a, verb))
	}
	return c
}

// planText is what every plan has in common.
const planText = `A plan shows every row that the command would create, change or end, the cost, the quota before and
after, and what it would displace. Without room it shows why, and what would be accepted instead. Making a plan
changes nothing and reserves nothing. For five minutes, forewarm apply does exactly what the plan shows, or nothing:
if something has changed since, it says what.`

// planInstead is a command that makes a plan of what it would do.
func planInstead(a *app.App, c *cobra.Command) *cobra.Command {
	run := c.RunE
	c.Short = "Plan: " + strings.ToLower(c.Short[:1]) + c.Short[1:]
	switch c.Name() {
	case "set":
		c.Use = strings.Replace(c.Use, "set", "quota", 1)
	case "edit":
		c.Use = strings.Replace(c.Use, "edit", "pool", 1)
	}
	c.Long = cmp.Or(c.Long, c.Short+".") +
		"\n\nThis only makes a plan; forewarm apply carries it out. See forewarm plan --help."
	c.Annotations = nil // a plan is a dry run, and there is nothing to wait for
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a.Planning = true
		return run(cmd, args)
	}
	return c
}
