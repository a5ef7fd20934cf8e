package ssh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// report is what the script said: only what stands between its first line and
// its last, since login shells talk too.
type report struct {
	state   string // known, unknown, free or passed
	claim   claim
	phase   string // standing, ending or gone
	ended   time.Time
	boot    progress
	wipe    progress
	log     []string
	probe   string // exit code, or hung; empty when there was none
	gpus    []string
	missing []string
}

// progress is how far a detached process came: none, running, died, or its exit
// code.
type progress string

const (
	notStarted progress = "none"
	inProgress progress = "running"
	diedEarly  progress = "died"
	succeeded  progress = "0"
)

// hasFailed reports whether it ended, and not well.
func (p progress) hasFailed() bool { return p != notStarted && p != inProgress && p != succeeded }

func parseReport(output []byte) (report, error) {
	_, body, begun := strings.Cut("\n"+string(output), "\nforewarm 1\n")
	if !begun || !strings.HasSuffix(body, "end\n") {
		return report{}, errors.New("the answer is not whole")
	}
	var r report
	for line := range strings.Lines(strings.TrimSuffix(body, "end\n")) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if err := r.setField(key, value); err != nil {
			return report{}, fmt.Errorf("reading %.100q: %w", line, err)
		}
	}
	return r, r.checkFields()
}

func (r *report) setField(key, value string) (err error) {
	switch key {
	case "": // an empty line after the output of a probe
	case "state":
		r.state = value
	case "claim":
		r.claim, err = parseClaim(value)
	case "phase":
		r.phase = value
	case "ended":
		r.ended, err = time.Parse(time.RFC3339Nano, value)
	case "boot":
		r.boot = progress(value)
	case "wipe":
		r.wipe = progress(value)
	case "log":
		r.log = append(r.log, value)
	case "probe":
		r.probe = value
	case "gpu":
		r.gpus = append(r.gpus, value)
	case "missing":
		r.missing = append(r.missing, value)
	default:
		err = errors.New("the line is unknown")
	}
	return err
}

func (r report) checkFields() error {
	switch {
	case r.state == "known" && (r.claim.ID == "" || r.phase == "" || r.boot == "" || r.wipe == ""):
		return errors.New("a claim without its state")
	case r.state == "known" && r.phase != "standing" && r.phase != "ending" && r.phase != "gone":
		return fmt.Errorf("phase %q is unknown", r.phase)
	case r.state == "known" && r.phase != "standing" && r.ended.IsZero():
		return errors.New("an end without its time")
	}
	return nil
}

// claim is who has a machine, as it is written there. Whoever wrote it first has
// it.
type claim struct {
	Version   int
	ID        string
	Token     string
	Type      string
	Region    string
	Owner     string
	Node      string
	CreatedAt time.Time
}

const claimVersion = 1

func parseClaim(text string) (claim, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	var c claim
	if err := decoder.Decode(&c); err != nil {
		return claim{}, fmt.Errorf("the claim is damaged: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return claim{}, errors.New("the claim is damaged: there is text after it")
	}
	if c.Version != claimVersion || c.ID == "" || c.Token == "" || c.Owner == "" || c.CreatedAt.IsZero() {
		return claim{}, fmt.Errorf("the claim has version %d or lacks a field; this program reads version %d",
			c.Version, claimVersion)
	}
	return c, nil
}
