package guest

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// Report is what the machine says about its GPUs.
type Report struct {
	Version int   `json:"v"`
	GPUs    []GPU `json:"gpus"`
}

// GPU is one row of a report.
type GPU struct {
	UUID      string `json:"uuid"`
	Index     int    `json:"index"`
	Name      string `json:"name"`
	MemoryMiB int    `json:"memory_mib"`
	// ECC is the number of errors since the boot that memory could not correct;
	// nil where the GPU does not count them.
	ECC *uint64 `json:"ecc"`
}

const (
	mark     = "forewarm-gpus "
	mostGPUs = 64
	mostText = 128 // of a name or a UUID
	alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
)

// Find returns the last report on a console. The console is a shared and lossy
// place: what cannot be read is passed over, since the line is repeated.
func Find(console string) (Report, bool) {
	for {
		at := strings.LastIndex(console, mark)
		if at < 0 {
			return Report{}, false
		}
		if report, ok := parseReport(console[at+len(mark):]); ok {
			return report, true
		}
		console = console[:at]
	}
}

func parseReport(text string) (Report, bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune(alphabet, r) })
	if end < 0 {
		return Report{}, false // it may still be being written
	}
	data, err := base64.StdEncoding.DecodeString(text[:end])
	if err != nil {
		return Report{}, false
	}
	var report Report
	if err := json.Unmarshal(data, &report); err != nil {
		return Report{}, false
	}
	return report, report.isSane()
}

func (r Report) isSane() bool {
	if r.Version != 1 || len(r.GPUs) > mostGPUs {
		return false
	}
	for _, g := range r.GPUs {
		if g.UUID == "" || len(g.UUID) > mostText || len(g.Name) > mostText || g.Index < 0 || g.MemoryMiB < 0 {
			return false
		}
	}
	return true
}
