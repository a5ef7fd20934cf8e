package ledger

import (
	"regexp"
	"strings"

	"github.com/forewarm/forewarm/internal/ids"
)

// indexedName is how one job of an array is named.
var indexedName = regexp.MustCompile(`\[\d+\]$`)

// checkJobName returns *InvalidError for a name by which nobody could find a job: one of blanks, and what stands for
// something else wherever a job is named. A job needs no name.
func checkJobName(name string) error {
	const fix = "use another name, or none"
	switch {
	case name != "" && strings.TrimSpace(name) == "":
		return &InvalidError{Field: "name", Rule: "must have more than blanks", Fix: fix}
	case strings.HasPrefix(name, ids.Job+"_"), strings.HasPrefix(name, ids.Array+"_"):
		return &InvalidError{Field: "name", Rule: "must not begin with job_ or arr_, as ids do", Fix: fix}
	case indexedName.MatchString(name):
		return &InvalidError{Field: "name", Fix: fix,
			Rule: "must not end with a number in brackets, which stands for one job of an array"}
	}
	return nil
}
