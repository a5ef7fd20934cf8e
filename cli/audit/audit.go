// Package audit proves that the journal was not changed.
package audit

import (
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

var auditView = output.View[contract.AuditPage]{
	Name: func(x contract.AuditPage) string { return x.LastSeal },
	Columns: []output.Column[contract.AuditPage]{
		{Head: "JOURNAL", Cell: func(x contract.AuditPage) string { return journalVerdict(x) }},
		{Head: "SEALS", Cell: func(x contract.AuditPage) string { return strconv.Itoa(x.Seals) }},
		{Head: "EVENTS", Cell: func(x contract.AuditPage) string { return strconv.Itoa(x.Events) }},
		{Head: "NOT SEALED YET", Cell: unsealedText},
		{Head: "LAST SEAL", Cell: func(x contract.AuditPage) string { return format.OrDash(x.LastSeal) }},
	},
}

func journalVerdict(x contract.AuditPage) string {
	switch {
	case x.Finding != nil && x.Finding.Seal == 0:
		return "lacks seals"
	case x.Finding != nil:
		return "is not as it was sealed"
	case x.Seals == 0:
		return "has no seals yet"
	}
	return "is as it was sealed"
}

func unsealedText(x contract.AuditPage) string {
	if x.UnsealedSince == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s, the oldest of %s", format.Count(x.Unsealed, "event"), format.Time(*x.UnsealedSince))
}

// NewCommand is the command audit.
func NewCommand(a *app.App) *cobra.Command {
	var anchor string
	verify := &cobra.Command{
		Use: "verify", Short: "Compare the whole journal with its seals (operators)", Args: flags.NoArgs,
		Long: "Compares every event with the seal that covers it, and names the first event that was changed, removed,\n" +
			"inserted or moved. Keep the last seal that it prints where nobody with access to the database or the pepper\n" +
			"can write: --anchor proves later that nothing before that seal was rewritten. Servers and workers keep the\n" +
			"newest seal they have seen in their data directories, and report when it is missing: see forewarm recovery\n" +
			"show.",
		Example: "  forewarm audit verify\n  forewarm audit verify -o name > /media/notary/seal\n" +
			"  forewarm audit verify --anchor \"$(cat /media/notary/seal)\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("anchor") && strings.TrimSpace(anchor) == "" {
				return exit.UsageErrorf("forewarm audit verify --help",
					"--anchor is empty: the seal that was kept could not be read")
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			all, err := verifyAll(a, cmd, api, anchor)
			if err != nil {
				return err
			}
			if err := output.One(a, cmd, auditView, all); err != nil {
				return err
			}
			return tamperedError(all)
		},
	}
	verify.Flags().StringVar(&anchor, "anchor", "",
		"a seal kept elsewhere, exactly as printed: it must still be in the chain")
	return app.NewGroupCommand("audit", "Prove that the journal was not changed", verify)
}

// verifyAll reads page after page and says how far it has come.
func verifyAll(a *app.App, cmd *cobra.Command, api *client.Client, anchor string) (all contract.AuditPage, err error) {
	for more := true; more; more = all.More && all.Finding == nil {
		part, err := api.VerifyJournal(cmd.Context(), all.LastSeal, anchor)
		if err != nil {
			return all, err
		}
		part.Seals, part.Events = part.Seals+all.Seals, part.Events+all.Events
		if part.LastSeal == "" {
			part.LastSeal = all.LastSeal
		}
		all = part
		if all.More {
			a.Say(cmd, "seal %d of %d: %s, as they were sealed", all.Seals, all.NewestSeal,
				format.Count(all.Events, "event"))
		}
	}
	return all, nil
}

// tamperedError is the failure of a journal that is not as it was sealed.
func tamperedError(x contract.AuditPage) error {
	f := x.Finding
	if f == nil {
		return nil
	}
	about := fmt.Sprintf("seal %d ", f.Seal)
	detail, next :=
		fmt.Sprintf("%s before it %s as sealed.", format.Count(x.Events, "event"), format.IsOrAre(x.Events)),
		"forewarm events"
	switch {
	case f.Seal == 0:
		about, next = "", "forewarm recovery show"
		detail = fmt.Sprintf("%s %s as sealed.", format.Count(x.Events, "event"), format.IsOrAre(x.Events))
	case f.Event > 0:
		about = fmt.Sprintf("event %d (seal %d) ", f.Event, f.Seal)
	}
	return &exit.Error{Code: exit.Failed, Message: fmt.Sprintf("%s%s [%s]", about, f.What, f.Kind),
		Detail: []string{detail},
		Next:   []string{next}}
}
