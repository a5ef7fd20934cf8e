// Package guest is what runs inside a machine in Compute Engine on Forewarm's
// behalf, a start-up script, and how to read what it writes.
//
// A machine has no other way to tell that a spot machine is being taken back,
// or which GPUs it has: Google's API shows neither. The script writes both as
// guest attributes, which everybody who may read the instance can read.
package guest

import (
	_ "embed" // the script
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Script is the start-up script. It runs the one in the metadata key UserKey, if
// there is one, and once that has ended well the one in DaemonKey.
//
//go:embed startup.sh
var Script string

// The metadata keys that the script reads, and the namespace that it writes.
const (
	UserKey    = "forewarm-startup-script"
	DaemonKey  = "forewarm-daemon-script"
	ExpiresKey = "forewarm-expires-at" // seconds since 1970
	Namespace  = "forewarm"
)

// GPU is one device as the machine's driver shows it.
type GPU struct {
	Index          int    `json:"index"`
	UUID           string `json:"uuid"`
	Name           string `json:"name"`
	MemoryMiB      int    `json:"memory_mib"`
	ECCUncorrected int    `json:"ecc_uncorrected"` // errors since the driver was loaded
}

// Report is what a machine wrote so far.
type Report struct {
	GPUs   []GPU     // none: the driver does not answer yet
	Notice time.Time // when it saw that it is being taken back; zero for not
	Error  string    // why it will never be ready
}

const mostGPUs = 64

// Read understands the values that a machine wrote, by key. Unknown keys are
// left alone: a newer script may have them. What is written by a key and makes
// no sense is an error: anybody on the machine can write there.
func Read(values map[string]string) (Report, error) {
	var report Report
	report.Error = clipText(values["error"])
	if text, written := values["notice"]; written {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds <= 0 {
			return Report{}, fmt.Errorf("the notice %q is no time", clipText(text))
		}
		report.Notice = time.Unix(seconds, 0).UTC()
	}
	text, written := values["gpus"]
	if !written {
		return report, nil
	}
	if err := json.Unmarshal([]byte(text), &report.GPUs); err != nil {
		return Report{}, fmt.Errorf("the report of GPUs: %w", err)
	}
	return report, checkGPUs(report.GPUs)
}

func checkGPUs(gpus []GPU) error {
	if len(gpus) == 0 || len(gpus) > mostGPUs {
		return fmt.Errorf("the report has %d GPUs, not 1 to %d", len(gpus), mostGPUs)
	}
	uuids, indexes := map[string]bool{}, map[int]bool{}
	for _, g := range gpus {
		if g.UUID == "" || uuids[g.UUID] || indexes[g.Index] || g.Index < 0 || g.MemoryMiB < 0 || g.ECCUncorrected < 0 {
			return fmt.Errorf("GPU %d of the report has no UUID or is there twice", g.Index)
		}
		uuids[g.UUID], indexes[g.Index] = true, true
	}
	return nil
}

const mostText = 200

func clipText(text string) string {
	if len(text) > mostText {
		return text[:mostText]
	}
	return text
}
