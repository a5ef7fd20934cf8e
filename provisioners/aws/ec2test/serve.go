package ec2test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const maxRequest = 1 << 20

// call is one request as an action sees it.
type call struct {
	action string
	form   url.Values
	now    time.Time
	fault  Fault
}

// apiError is EC2's refusal of a call.
type apiError struct{ code, message string }

func (e *apiError) Error() string { return e.code + ": " + e.message }

func newRefusal(code, format string, args ...any) *apiError {
	return &apiError{code: code, message: fmt.Sprintf(format, args...)}
}

// actions are the calls that the fake knows.
var actions = map[string]func(*Region, call) (any, error){
	"RunInstances":                 (*Region).runInstances,
	"TerminateInstances":           (*Region).terminateInstances,
	"CreateTags":                   (*Region).createTags,
	"DescribeInstances":            (*Region).describeInstances,
	"DescribeInstanceStatus":       (*Region).describeStatus,
	"DescribeSpotInstanceRequests": (*Region).describeSpot,
	"DescribeImages":               (*Region).describeImages,
	"GetConsoleOutput":             (*Region).consoleOutput,
}

// ServeHTTP answers one call of the Query protocol. It cuts the connection where
// a fault says that the answer is lost.
func (r *Region) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	req.Body = http.MaxBytesReader(w, req.Body, maxRequest)
	if err := req.ParseForm(); err != nil {
		writeError(w, newRefusal("MalformedQueryString", "%v", err), Fault{})
		return
	}
	answer, fault, err := r.runAction(req)
	var refused *apiError
	switch {
	case errors.As(err, &refused):
		writeError(w, refused, fault)
	case fault.Effect == Lose || fault.Effect == LoseAnswer:
		panic(http.ErrAbortHandler)
	default:
		writeXML(w, http.StatusOK, answer)
	}
}

func (r *Region) runAction(req *http.Request) (any, Fault, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	action := req.PostForm.Get("Action")
	r.calls[action]++
	run, known := actions[action]
	if !known {
		return nil, Fault{}, newRefusal("InvalidAction", "The action %s is not valid for this web service.", action)
	}
	if err := r.checkSignature(req.Header.Get("Authorization")); err != nil {
		return nil, Fault{}, err
	}
	now := r.advanceMachines()
	fault := r.nextFault(action)
	switch fault.Effect {
	case Refuse:
		return nil, fault, newRefusal(fault.Code, "%s", fault.Message)
	case Lose:
		return nil, fault, nil
	}
	answer, err := run(r, call{action: action, form: req.PostForm, now: now, fault: fault})
	return answer, fault, err
}

var credential = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([A-Za-z0-9]+)/`)

func (r *Region) checkSignature(header string) error {
	match := credential.FindStringSubmatch(header)
	if match == nil {
		return newRefusal("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	if len(r.config.AccessKeys) > 0 && !slices.Contains(r.config.AccessKeys, match[1]) {
		return newRefusal("AuthFailure", "AWS was not able to validate the provided access credentials")
	}
	return nil
}

// serverErrors are the codes that EC2 answers with a status of 500 or 503.
var serverErrors = map[string]int{
	"InternalError": 500, "InternalFailure": 500, "Unavailable": 503, "ServiceUnavailable": 503,
	"RequestLimitExceeded":         503,
	"InsufficientInstanceCapacity": 500, "InsufficientAddressCapacity": 500, "InsufficientHostCapacity": 500,
	"InsufficientReservedInstanceCapacity": 500, "InsufficientVolumeCapacity": 500, "InsufficientCapacity": 500,
	"UnauthorizedOperation": 403, "AuthFailure": 401, "OptInRequired": 401, "MissingAuthenticationToken": 403,
}

func writeError(w http.ResponseWriter, e *apiError, fault Fault) {
	type body struct {
		XMLName   xml.Name `xml:"Response"`
		Code      string   `xml:"Errors>Error>Code"`
		Message   string   `xml:"Errors>Error>Message"`
		RequestID string   `xml:"RequestID"`
	}
	if fault.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(fault.RetryAfter.Seconds())))
	}
	status := max(fault.Status, serverErrors[e.code])
	if status == 0 {
		status = http.StatusBadRequest
	}
	writeXML(w, status, body{Code: e.code, Message: e.message, RequestID: "req-fake"})
}

func writeXML(w http.ResponseWriter, status int, body any) {
	text, err := xml.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), text...))
}
