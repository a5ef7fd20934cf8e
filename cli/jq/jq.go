// Package jq runs the expressions of --jq.
package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/format"
)

// Filter is a compiled --jq expression.
type Filter struct{ code *gojq.Code }

// Parse compiles an expression. It sees neither files nor the environment.
func Parse(text string) (*Filter, error) {
	query, err := gojq.Parse(text)
	if err != nil {
		return nil, exit.UsageErrorf("forewarm options", "--jq %q is not an expression of jq: %s", text,
			strings.TrimSpace(err.Error()))
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, exit.UsageErrorf("forewarm options", "--jq %q: %s", text, err.Error())
	}
	return &Filter{code}, nil
}

// Write writes what the filter makes of a JSON value, one result a line; texts
// come without their quotes.
func (f *Filter) Write(w io.Writer, value []byte) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	results := f.code.RunWithContext(context.Background(), v)
	for {
		v, ok := results.Next()
		if !ok {
			return nil
		}
		if err, failed := v.(error); failed {
			return filterFailed(err)
		}
		if err := writeResult(w, v); err != nil {
			return err
		}
	}
}

func filterFailed(err error) error {
	var halt *gojq.HaltError
	if errors.As(err, &halt) && halt.Value() == nil {
		return nil
	}
	return &exit.Error{Code: exit.Failed, Message: "--jq: " + err.Error(), Next: []string{"forewarm options"}, Err: err}
}

func writeResult(w io.Writer, v any) error {
	if text, ok := v.(string); ok {
		_, err := fmt.Fprintln(w, format.PlainLines(text))
		return err
	}
	text, err := gojq.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	_, err = fmt.Fprintln(w, format.EscapeJSON(string(text)))
	return err
}
