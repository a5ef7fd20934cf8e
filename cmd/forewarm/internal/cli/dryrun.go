package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
)

// rehearsal is what a dry run holds back: a request that would have changed
// something and of which the server has no preview.
type rehearsal struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// Error says that nothing was sent.
func (r *rehearsal) Error() string { return "dry run: nothing was changed" }

// withheld sends what changes nothing and holds back the rest, so that no
// command can forget to ask whether this is a dry run.
type withheld struct{ next client.Doer }

// Do sends a request that only reads or asks.
func (d withheld) Do(r *http.Request) (*http.Response, error) {
	if harmless(r) {
		return d.next.Do(r)
	}
	held := &rehearsal{Method: r.Method, Path: r.URL.Path}
	if r.URL.RawQuery != "" {
		held.Path += "?" + r.URL.RawQuery
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
		held.Body = body
	}
	return nil, held
}

// asking are the routes that answer a POST and change nothing.
var asking = []string{"/plans", "/explain", "/advice/calendar"}

func harmless(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Query().Get("dry_run") == "true" {
		return true
	}
	return r.Method == http.MethodPost && slices.ContainsFunc(asking, func(end string) bool { return strings.HasSuffix(r.URL.Path, "/v1"+end) })
}

// rehearsed shows what a dry run held back, as data, and ends well.
func (a *app) rehearsed(cmd *cobra.Command, err error) error {
	var held *rehearsal
	if !errors.As(err, &held) {
		return err
	}
	a.say(cmd, "Dry run: nothing was changed. The server has no preview of this; without -n it would be sent:")
	switch a.flags.output {
	case asJSON, asYAML:
		return a.encode(cmd.OutOrStdout(), held)
	case jsonl:
		return a.line(cmd.OutOrStdout(), held)
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), held.Method, held.Path); err != nil || len(held.Body) == 0 {
		return err
	}
	var body bytes.Buffer
	if err := json.Indent(&body, held.Body, "", "  "); err != nil {
		body.Reset()
		body.Write(held.Body)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), plainLines(body.String()))
	return err
}
