// Package api sends any request with the current key.
package api

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// askFor bounds one raw request.
const askFor = 2 * time.Minute

// NewCommand is the command api.
func NewCommand(a *app.App) *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "api METHOD PATH", Short: "Send any request with your key", Args: flags.ExactArgs("METHOD", "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := readPayload(cmd, data)
			if err != nil {
				return err
			}
			return sendRaw(a, cmd, strings.ToUpper(args[0]), args[1], body)
		},
	}
	c.Flags().StringVarP(&data, "data", "d", "", "the JSON body; @FILE reads a file, - standard input")
	return c
}

func readPayload(cmd *cobra.Command, data string) (string, error) {
	var all []byte
	var err error
	switch file, isFile := strings.CutPrefix(data, "@"); {
	case data == "-":
		all, err = io.ReadAll(cmd.InOrStdin())
	case isFile:
		all, err = os.ReadFile(file)
	default:
		return data, nil
	}
	if err != nil {
		return "",
			&exit.Error{Code: exit.Usage, Message: "--data: " + err.Error(), Next: []string{"forewarm api --help"},
				Err: err}
	}
	return string(all), nil
}

// showsSecret is the paths of what refuses an idempotency key.
var showsSecret = regexp.MustCompile(`^/v1/nodes/[^/]+/(join|join-token|renew)$`)

// sendRaw sends a request to the chosen server and copies the answer out.
func sendRaw(a *app.App, cmd *cobra.Command, method, path, body string) error {
	t, err := a.Target()
	if err != nil {
		return err
	}
	if whole, err := url.Parse(path); err == nil && whole.Host != "" {
		return exit.UsageErrorf("forewarm api "+method+" "+flags.Quote(cmp.Or(whole.RequestURI(), "/")),
			"the path must have no server; that one is chosen by --server or --context")
	}
	if !strings.HasPrefix(path, "/") {
		return exit.UsageErrorf("forewarm api "+method+" /"+path, "the path must begin with /")
	}
	req, err := http.NewRequestWithContext(cmd.Context(), method, t.Server+path, strings.NewReader(body))
	if err != nil {
		return exit.UsageErrorf("forewarm api --help", "%s", err.Error())
	}
	if t.Key != "" {
		req.Header.Set("Authorization", "Bearer "+t.Key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if method != http.MethodGet && (a.Flags.IdempotencyKey != "" || !showsSecret.MatchString(req.URL.Path)) {
		req.Header.Set(contract.HeaderIdempotencyKey, cmp.Or(a.Flags.IdempotencyKey, rand.Text()))
	}
	resp, err := a.NewDoer(askFor).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if err := copyAnswer(a, cmd, client.Succeeded(resp), answer); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return problem.OfAnswer(resp, answer)
}

// copyAnswer writes an answer as it came, or what --jq makes of it.
func copyAnswer(a *app.App, cmd *cobra.Command, succeeded bool, answer []byte) error {
	if a.Filter != nil && succeeded && len(answer) > 0 {
		return a.Filter.Write(cmd.OutOrStdout(), answer)
	}
	_, err := cmd.OutOrStdout().Write(answer)
	return err
}
