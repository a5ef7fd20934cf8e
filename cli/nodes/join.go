package nodes

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/core/access"
)

func newJoinCommand(a *app.App) *cobra.Command {
	var life time.Duration
	c := &cobra.Command{
		Use: "join NODE", Short: "Print what to run on a node to have its daemon join (operators)",
		Long: "Print what to run on a node to have its daemon join.\n\n" +
			"It issues a join token, which works once, for this node, for 15 minutes at most. The token is read from " +
			"standard input there, so that it is in no process list and in no file.",
		Args: flags.ExactArgs("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Flags.IdempotencyKey != "" {
				return exit.UsageErrorf(cmd.CommandPath()+" --help",
					"--idempotency-key is not for tokens: each request makes a new one, which voids the one before")
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.IssueJoinToken(cmd.Context(), args[0], life)
			if err != nil {
				return err
			}
			if got.NodeID != args[0] || !nodeID.MatchString(got.NodeID) || !joinToken.MatchString(got.Token) {
				return &exit.Error{Code: exit.Failed, Message: "the server sent what is no token of this node",
					Next: []string{"forewarm version"}}
			}
			target, err := a.Target()
			if err != nil {
				return err
			}
			a.Say(cmd, "The token is shown only once and stored nowhere.")
			address := cmp.Or(publicAddress(got.URL), target.Server)
			if isLoopback(address) {
				a.Say(cmd, "Warning: %s is reached on this machine alone. For a node on another one, %s.", address,
					otherAddress(got.URL))
			}
			return output.Text(a, cmd, got.NodeID, got, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, joinText, got.ExpiresAt.UTC().Format(time.RFC3339), access.QuoteWord(address),
					got.NodeID, got.Token)
			})
		},
	}
	c.Flags().DurationVar(&life, "expires-in", 0, "how long the token works; at most, and without it, 15m")
	return c
}

// otherAddress says how an address comes about that nodes of other machines reach, beside the one that a server says it
// has.
func otherAddress(said string) string {
	if publicAddress(said) == "" {
		return "set server.public_url of the control plane, or write the address at which the node reaches it"
	}
	return "write the address at which the node reaches the control plane, of which server.public_url is this loopback " +
		"address"
}

// publicAddress is an address that a server says it has, or empty if it is none.
func publicAddress(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// isLoopback reports whether only programs of the same machine reach an address.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// What a server sends becomes lines that root runs.
var (
	nodeID    = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	joinToken = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
)

const joinText = `# On the node, as root, until %[1]s. The token works once.
# forewarm-node is the program that make bin/forewarm-node builds, or what the control plane hands out,
# if it does, under /download/forewarm-node-linux-amd64 (or -arm64), and, where that does not run, under
# /download/forewarm-node-static-linux-amd64.
install -m 0755 forewarm-node /usr/local/bin/
forewarm-node run --url %[2]s --node %[3]s --token-file - <<'TOKEN'
%[4]s
TOKEN
`
