package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var auditView = view[contract.AuditPage]{
	name: func(x contract.AuditPage) string { return x.LastSeal },
	columns: []column[contract.AuditPage]{
		{head: "JOURNAL", cell: func(x contract.AuditPage) string { return journalVerdict(x) }},
		{head: "SEALS", cell: func(x contract.AuditPage) string { return strconv.Itoa(x.Seals) }},
		{head: "EVENTS", cell: func(x contract.AuditPage) string { return strconv.Itoa(x.Events) }},
		{head: "NOT SEALED YET", cell: unsealedText},
		{head: "LAST SEAL", cell: func(x contract.AuditPage) string { return orDash(x.LastSeal) }},
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
	return fmt.Sprintf("%s, the oldest of %s", formatCount(x.Unsealed, "event"), formatTime(*x.UnsealedSince))
}

func (a *app) newAuditCommand() *cobra.Command {
	var anchor string
	verify := &cobra.Command{
		Use: "verify", Short: "Compare the whole journal with its seals (operators)", Args: noArgs,
		Long: "Compares every event with the seal that covers it, and names the first one that was changed, " +
			"removed, put\n" +
			"between or moved. Keep the last seal that it prints where nobody who has the database or the pepper " +
			"can write:\n" +
			"with --anchor it proves later that nothing before it was written anew. Servers and workers keep the " +
			"newest seal that\n" +
			"they saw in their data directories, and tell when it is gone: see forewarm recovery show.",
		Example: "  forewarm audit verify\n  forewarm audit verify -o name > /media/notary/seal\n" +
			"  forewarm audit verify --anchor \"$(cat /media/notary/seal)\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			all, err := a.verifyAll(cmd, api, anchor)
			if err != nil {
				return err
			}
			if err := showOne(a, cmd, auditView, all); err != nil {
				return err
			}
			return tamperedError(all)
		},
	}
	verify.Flags().StringVar(&anchor, "anchor", "",
		"a seal that was kept elsewhere, as it was printed: it must still be in the chain")
	return newGroupCommand("audit", "Prove that the journal was not changed", verify)
}

// verifyAll reads page after page and says how far it has come.
func (a *app) verifyAll(cmd *cobra.Command, api *client.Client, anchor string) (all contract.AuditPage, err error) {
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
			a.say(cmd, "seal %d of %d: %s, as they were sealed", all.Seals, all.NewestSeal, formatCount(all.Events, "event"))
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
	detail, next := fmt.Sprintf("%s before it %s as sealed.", formatCount(x.Events, "event"), isOrAre(x.Events)),
		"forewarm events"
	switch {
	case f.Seal == 0:
		about, next = "", "forewarm recovery show"
		detail = fmt.Sprintf("%s %s as sealed.", formatCount(x.Events, "event"), isOrAre(x.Events))
	case f.Event > 0:
		about = fmt.Sprintf("event %d (seal %d) ", f.Event, f.Seal)
	}
	return &Error{Exit: ExitFailed, Message: fmt.Sprintf("%s%s [%s]", about, f.What, f.Kind), Detail: []string{detail},
		Next: []string{next}}
}
