package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// wireVersion changes when an older script could misread a question.
const wireVersion = 1

// question is the document that a script reads.
type question struct {
	Version int        `json:"version"`
	Verb    verb       `json:"verb"`
	Token   string     `json:"token,omitempty"`
	Spec    *wireSpec  `json:"spec,omitempty"`
	ID      string     `json:"id,omitempty"`
	Owner   string     `json:"owner,omitempty"`
	Until   *time.Time `json:"until,omitempty"`
}

type wireSpec struct {
	Type      string     `json:"type"`
	Region    string     `json:"region"`
	Owner     string     `json:"owner"`
	NodeID    string     `json:"node_id"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// Daemon is only there with Config.Daemon.
	Daemon *wireDaemon `json:"daemon,omitempty"`
}

type wireDaemon struct {
	URL       string `json:"url"`
	JoinToken string `json:"join_token"`
}

// answer is the document that a script writes: exactly one of the fields, or
// none where there is nothing to say. Complete belongs to Instances. Rows stay
// raw, so that one that is not understood does not hide the others.
type answer struct {
	Instance  *wireInstance     `json:"instance"`
	Instances []json.RawMessage `json:"instances"`
	Complete  *bool             `json:"complete"`
	Offers    []wireOffer       `json:"offers"`
	Error     *wireError        `json:"error"`
}

type wireError struct {
	Kind              provisioners.Kind `json:"kind"`
	Scope             string            `json:"scope"`
	Message           string            `json:"message"`
	RetryAfterSeconds int64             `json:"retry_after_seconds"`
}

// decodeStrictly decodes one document that fills data.
func decodeStrictly(data []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the document")
	}
	return nil
}

// hasOnly reports whether the answer holds the one field and nothing else.
func (a answer) hasOnly(field string) bool {
	for name, there := range map[string]bool{
		"instance": a.Instance != nil, "instances": a.Instances != nil,
		"offers": a.Offers != nil, "error": a.Error != nil,
	} {
		if there != (name == field) {
			return false
		}
	}
	return a.Complete == nil || field == "instances"
}

// parseInstance returns the machine that the answer is about.
func (a answer) parseInstance(simulated bool) (provisioners.Instance, error) {
	if !a.hasOnly("instance") {
		return provisioners.Instance{}, errors.New("it holds no instance, or something else too")
	}
	return a.Instance.portInstance(simulated)
}

// parseList returns the owner's machines. A machine of somebody else may look as it
// likes.
func (a answer) parseList(owner string, simulated bool) (provisioners.List, error) {
	if !a.hasOnly("instances") {
		return provisioners.List{}, notUnderstood(verbList, errors.New("it holds no instances, or something else too"))
	}
	list := provisioners.List{Complete: a.Complete != nil && *a.Complete}
	seen := map[string]bool{}
	for _, row := range a.Instances {
		var found wireInstance
		err := decodeStrictly(row, &found)
		if err == nil && (found.Owner == "" || found.Owner != owner) {
			continue
		}
		var instance provisioners.Instance
		if err == nil {
			instance, err = found.portInstance(simulated)
		}
		if err != nil || seen[instance.ID] {
			list.Complete = false
			continue
		}
		seen[instance.ID] = true
		list.Instances = append(list.Instances, instance)
	}
	return list, nil
}

// checkEmpty wants the empty document: a script that says something else did not
// do what it was asked.
func (a answer) checkEmpty(v verb) error {
	if !a.hasOnly("") {
		return notUnderstood(v, errors.New("want {} and nothing in it"))
	}
	return nil
}

// portError turns the script's error into ours. A script that does not know the
// machine is believed only where it was asked about one.
func (e wireError) portError(v verb) error {
	kind := e.Kind
	if !kind.Known() {
		return notUnderstood(v, fmt.Errorf("error kind %q is unknown; its message: %s", e.Kind, e.Message))
	}
	if kind == provisioners.KindNotFound && v != verbGet && v != verbDelete && v != verbRenew {
		kind = v.doubtKind()
	}
	const longest = 24 * 60 * 60
	return &provisioners.Error{
		Kind: kind, Scope: e.Scope, Message: e.Message, RetryAfter: durationOf(min(max(e.RetryAfterSeconds, 0),
			longest)),
	}
}

func notUnderstood(v verb, err error) *provisioners.Error {
	return &provisioners.Error{Kind: v.doubtKind(), Message: "the answer of script " + string(v) + " is not understood",
		Err: err}
}

// optionalTime is nil for the zero time, which means never.
func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
