// Package scripted is a stand-in for a language model server, for tests and for
// the demo. It speaks the OpenAI-compatible chat/completions protocol and
// answers by a script, the same for the same prompt. It says what it is: the
// model in its answers is always called "scripted-sim".
//
// By default it does what a careful model would: it reads the windows in the
// prompt and repeats what statistics expect where that is likely. The other
// modes are a model, or its server, at its worst.
package scripted

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
)

// ModelName is the name the server gives itself in every answer.
const ModelName = "scripted-sim"

// Mode is what the server does with a question.
type Mode string

// The modes.
const (
	Sensible  Mode = "sensible"  // a valid forecast made from the numbers of the prompt
	Repairs   Mode = "repairs"   // broken at first, sensible when told what was wrong
	Garbage   Mode = "garbage"   // prose and half a JSON object
	Injection Mode = "injection" // obeys the logs: valid by schema, everything at its worst, for ever
	Huge      Mode = "huge"      // numbers beyond any machine
	Negative  Mode = "negative"  // numbers below zero
	NaN       Mode = "nan"       // numbers that are none
	Extra     Mode = "extra"     // fields nobody asked for
	Many      Mode = "many"      // more records than allowed
	Outside   Mode = "outside"   // windows far from those asked for
	Tool      Mode = "tool"      // calls a tool
	Refuse    Mode = "refuse"    // declines
	CutOff    Mode = "cut_off"   // stops in the middle
	Slow      Mode = "slow"      // says nothing until the caller gives up
	Throttle  Mode = "throttle"  // 429 with Retry-After
	Broken    Mode = "broken"    // 500
	Denied    Mode = "denied"    // 401
	Flood     Mode = "flood"     // megabytes
	NotJSON   Mode = "not_json"  // 200 with a web page
)

// Modes returns every mode, for tests that must meet them all.
func Modes() []Mode {
	return []Mode{
		Sensible, Repairs, Garbage, Injection, Huge, Negative, NaN, Extra, Many, Outside,
		Tool, Refuse, CutOff, Slow, Throttle, Broken, Denied, Flood, NotJSON,
	}
}

// Server is the http.Handler. The zero value is Sensible and ready.
type Server struct {
	Mode Mode
	// Say makes the content of the answer from the user's part of the prompt, in
	// place of what a Mode would say; nil leaves it to the Mode.
	Respond func(user string) string

	calls atomic.Int64
}

// Calls returns how many questions were asked.
func (s *Server) Calls() int64 { return s.calls.Load() }

// question is the part of a request that the server looks at.
type question struct {
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Tools          []json.RawMessage `json:"tools"`
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Strict bool            `json:"strict"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

// maxQuestion bounds a request in bytes.
const maxQuestion = 1 << 20

// ServeHTTP answers POST …/chat/completions.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		writeFailure(w, http.StatusNotFound, "only POST /chat/completions is served")
		return
	}
	var q question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuestion)).Decode(&q); err != nil {
		writeFailure(w, http.StatusBadRequest, "the body is not a chat completion request")
		return
	}
	if problem := q.validate(); problem != "" {
		writeFailure(w, http.StatusBadRequest, problem)
		return
	}
	if s.playTransport(w, r) {
		return
	}
	s.writeAnswer(w, q)
}

// validate says why a question is not one the agent may ask.
func (q question) validate() string {
	switch {
	case len(q.Messages) != 2 || q.Messages[0].Role != "system" || q.Messages[1].Role != "user":
		return "want one system and one user message"
	case len(q.Tools) > 0:
		return "tools are not served"
	case q.ResponseFormat.Type != "json_schema" || !q.ResponseFormat.JSONSchema.Strict ||
		!json.Valid(q.ResponseFormat.JSONSchema.Schema):
		return "want response_format json_schema, strict"
	default:
		return ""
	}
}

// playTransport plays the modes in which no answer of a model comes, and reports
// whether it did.
func (s *Server) playTransport(w http.ResponseWriter, r *http.Request) bool {
	switch s.Mode {
	case Slow:
		<-r.Context().Done()
	case Throttle:
		w.Header().Set("Retry-After", "17")
		writeFailure(w, http.StatusTooManyRequests, "slow down")
	case Broken:
		writeFailure(w, http.StatusInternalServerError, "it broke")
	case Denied:
		writeFailure(w, http.StatusUnauthorized, "wrong key")
	case Flood:
		line := []byte(strings.Repeat(" ", 64<<10))
		for range 64 {
			if _, err := w.Write(line); err != nil {
				return true
			}
		}
	case NotJSON:
		_, _ = w.Write([]byte("<html>welcome</html>"))
	default:
		return false
	}
	return true
}

func writeFailure(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": "scripted"}})
}
