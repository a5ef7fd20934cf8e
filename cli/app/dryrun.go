package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// WithheldRequest is what a dry run holds back: a request that would have changed
// something and of which the server has no preview.
type WithheldRequest struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// Error says that nothing was sent.
func (r *WithheldRequest) Error() string { return "dry run: nothing was changed" }

// dryRunDoer sends what changes nothing and holds back the rest, so that no
// command can forget to ask whether this is a dry run. What a request names is
// looked for first: a dry run fails as the command would where there is none.
type dryRunDoer struct{ next client.Doer }

// Do sends a request that only reads or asks.
func (d dryRunDoer) Do(r *http.Request) (*http.Response, error) {
	if changesNothing(r) {
		return d.next.Do(r)
	}
	held := &WithheldRequest{Method: r.Method, Path: r.URL.Path}
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
	if refused, err := d.checkNames(r, held); refused != nil || err != nil {
		return refused, err
	}
	return nil, held
}

// collections are those of which one thing can be read by its id or name.
var collections = []string{"allocations", "forecasts", "jobs", "nodes", "organizations", "plans", "pools",
	"reservations", "schedules", "users"}

// namedIn are the collections of what the fields of a body name.
var namedIn = map[string]string{"organization_id": "organizations", "user_id": "users", "pool": "pools"}

// checkNames is the server's refusal of something that a request names; nil: all of
// it is there.
func (d dryRunDoer) checkNames(r *http.Request, held *WithheldRequest) (*http.Response, error) {
	_, path, ok := strings.Cut(r.URL.EscapedPath(), "/v1/")
	if parts := strings.Split(path, "/"); ok && len(parts) > 1 && slices.Contains(collections, parts[0]) {
		if refused, err := d.lookUp(r, parts[0], parts[1]); refused != nil || err != nil {
			return refused, err
		}
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(held.Body, &fields) != nil {
		return nil, nil
	}
	for _, field := range slices.Sorted(maps.Keys(namedIn)) {
		var named string
		if json.Unmarshal(fields[field], &named) != nil || named == "" {
			continue
		}
		refused, err := d.lookUp(r, namedIn[field], url.PathEscape(named))
		if err == nil && refused != nil {
			err = blameField(refused, field)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// lookUp reads what a request names, with the request's own key; nil: it is there.
func (d dryRunDoer) lookUp(r *http.Request, collection, escaped string) (*http.Response, error) {
	target := *r.URL
	before, _, _ := strings.Cut(target.EscapedPath(), "/v1/")
	target.RawQuery, target.RawPath = "", before+"/v1/"+collection+"/"+escaped
	var err error
	if target.Path, err = url.PathUnescape(target.RawPath); err != nil {
		return nil, fmt.Errorf("looking for what is named: %w", err)
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("looking for what is named: %w", err)
	}
	if key := r.Header.Get("Authorization"); key != "" {
		req.Header.Set("Authorization", key)
	}
	resp, err := d.next.Do(req)
	if err != nil || !client.Succeeded(resp) {
		return resp, err
	}
	return nil, resp.Body.Close()
}

// blameField is the answer that a field of a body names nothing, as the server gives
// it to the request itself.
func blameField(refused *http.Response, field string) error {
	defer func() { _ = refused.Body.Close() }()
	body, err := io.ReadAll(refused.Body)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	var e *client.Error
	if err := problem.OfAnswer(refused, body); !errors.As(err, &e) ||
		refused.StatusCode != http.StatusNotFound {
		return err
	}
	unknown := contract.FieldError{Pointer: "/" + field, Code: problem.CodeUnknown, Message: e.Problem.Detail}
	return &client.Error{Problem: contract.Problem{Status: http.StatusUnprocessableEntity,
		Code:   contract.CodeValidationFailed,
		Detail: e.Problem.Detail, Errors: []contract.FieldError{unknown}}}
}

// asking are the routes that answer a POST and change nothing.
var asking = []string{"/plans", "/explain", "/advice/calendar"}

func changesNothing(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Query().Get("dry_run") == "true" {
		return true
	}
	return r.Method == http.MethodPost && slices.ContainsFunc(asking,
		func(end string) bool { return strings.HasSuffix(r.URL.Path, "/v1"+end) })
}
