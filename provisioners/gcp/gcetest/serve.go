package gcetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// handler answers one call with a JSON value, or an *apiError. It is called with
// the cloud locked and brought up to now.
type handler func(r *http.Request, now time.Time) (any, error)

// object is a JSON object.
type object = map[string]any

// apiError is an error as the API renders it.
type apiError struct {
	status     int
	reason     string
	message    string
	retryAfter string
}

func (e *apiError) Error() string { return e.message }

func newRefusal(status int, reason, format string, args ...any) error {
	return &apiError{status: status, reason: reason, message: fmt.Sprintf(format, args...)}
}

const maxBody = 2 << 20

// wrapHandler wraps a handler in what every call has: faults, the project's and the
// zone's existence, and the rendering of its answer.
func (c *Cloud) wrapHandler(pattern string, handle handler) http.HandlerFunc {
	call := callOf(pattern)
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		answer, fault, err := c.answerCall(call, r, handle)
		if fault.Effect == Break {
			cutConnection(w)
			return
		}
		if err != nil {
			renderError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	}
}

func (c *Cloud) answerCall(call Call, r *http.Request, handle handler) (any, Fault, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.runGuests(now)
	c.calls[call]++
	fault, err := c.nextFault(call)
	if err != nil {
		return nil, fault, err
	}
	if project := r.PathValue("project"); project != c.config.Project {
		return nil, fault, newRefusal(http.StatusNotFound, "notFound", "The resource 'projects/%s' was not found",
			project)
	}
	if zone := r.PathValue("zone"); zone != "" && !slices.Contains(c.config.Zones, zone) {
		return nil, fault, newRefusal(http.StatusNotFound, "notFound",
			"The resource 'projects/%s/zones/%s' was not found",
			c.config.Project, zone)
	}
	answer, err := handle(r.WithContext(withFault(r.Context(), fault)), now)
	return answer, fault, err
}

// callOf names a pattern as the API's reference does, without the service.
func callOf(pattern string) Call {
	method, path, _ := strings.Cut(pattern, " ")
	last := path[strings.LastIndex(path, "/")+1:]
	switch {
	case strings.HasSuffix(path, "/aggregated/instances"):
		return AggregatedList
	case last == "wait":
		return Wait
	case !strings.HasPrefix(last, "{"):
		return map[string]Call{
			"GET instances": List, "POST instances": Insert, "GET operations": Operations,
			"POST setMetadata": SetMetadata, "GET getGuestAttributes": GuestAttributes, "GET zones": Zones,
		}[method+" "+last]
	case last == "{operation}":
		return Wait
	case method == http.MethodDelete:
		return Delete
	default:
		return Get
	}
}

// cutConnection ends the connection without an answer.
func cutConnection(w http.ResponseWriter) {
	if hijacker, ok := w.(http.Hijacker); ok {
		if conn, _, err := hijacker.Hijack(); err == nil {
			_ = conn.Close() // nobody is to hear of it
			return
		}
	}
	panic(http.ErrAbortHandler)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // a reader that left has nobody to tell
}

func renderError(w http.ResponseWriter, err error) {
	var refused *apiError
	if !errors.As(err, &refused) {
		refused = &apiError{status: http.StatusInternalServerError, reason: "backendError", message: err.Error()}
	}
	if refused.retryAfter != "" {
		w.Header().Set("Retry-After", refused.retryAfter)
	}
	writeJSON(w, refused.status, object{"error": object{
		"code": refused.status, "message": refused.message,
		"errors": []object{{"message": refused.message, "domain": "global", "reason": refused.reason}},
	}})
}

// decodeBody decodes the body of a request into an object.
func decodeBody(r *http.Request) (object, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, newRefusal(http.StatusBadRequest, "badRequest", "reading the request: %v", err)
	}
	var body object
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, newRefusal(http.StatusBadRequest, "parseError",
			"This API does not support parsing form-encoded input.")
	}
	return body, nil
}
