package cli

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// askFor bounds one raw request.
const askFor = 2 * time.Minute

func (a *app) newAPICommand() *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "api METHOD PATH", Short: "Send any request with your key", Args: exactArgs("METHOD", "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := readPayload(cmd, data)
			if err != nil {
				return err
			}
			return a.sendRaw(cmd, strings.ToUpper(args[0]), args[1], body)
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
		return "", &Error{Exit: ExitUsage, Message: "--data: " + err.Error(), Next: []string{"forewarm api --help"},
			Err: err}
	}
	return string(all), nil
}

// sendRaw sends a request to the chosen server and copies the answer out.
func (a *app) sendRaw(cmd *cobra.Command, method, path, body string) error {
	t, err := a.findTarget()
	if err != nil {
		return err
	}
	if whole, err := url.Parse(path); err == nil && whole.Host != "" {
		return usageErrorf("forewarm api "+method+" "+shellQuote(firstNonEmpty(whole.RequestURI(), "/")),
			"the path must have no server; that one is chosen by --server or --context")
	}
	if !strings.HasPrefix(path, "/") {
		return usageErrorf("forewarm api "+method+" /"+path, "the path must begin with /")
	}
	req, err := http.NewRequestWithContext(cmd.Context(), method, t.Server+path, strings.NewReader(body))
	if err != nil {
		return usageErrorf("forewarm api --help", "%s", err.Error())
	}
	if t.Key != "" {
		req.Header.Set("Authorization", "Bearer "+t.Key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if method != http.MethodGet {
		req.Header.Set(contract.HeaderIdempotencyKey, firstNonEmpty(a.flags.idempotencyKey, rand.Text()))
	}
	resp, err := a.newDoer(askFor).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if err := a.copyAnswer(cmd, resp.StatusCode, answer); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return problemOf(resp.StatusCode, answer)
}

// copyAnswer writes an answer as it came, or what --jq makes of it.
func (a *app) copyAnswer(cmd *cobra.Command, status int, answer []byte) error {
	if a.filter != nil && status < http.StatusBadRequest && len(answer) > 0 {
		return a.filter.writeResults(cmd.OutOrStdout(), answer)
	}
	_, err := cmd.OutOrStdout().Write(answer)
	return err
}

func problemOf(status int, answer []byte) error {
	if status < http.StatusBadRequest {
		return nil
	}
	p := contract.Problem{}
	if err := json.Unmarshal(answer, &p); err != nil || p.Code == "" {
		p = contract.Problem{Title: fmt.Sprintf("the server answered %d", status)}
	}
	p.Status = status
	return &client.Error{Problem: p}
}
