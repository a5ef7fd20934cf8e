package capacity

import (
	"slices"
	"strconv"
	"strings"
)

// Driver is the version of a GPU driver, such as 535.104.05. Empty: it is not known, or none is asked for.
type Driver string

const (
	mostDriverParts  = 4
	mostDriverDigits = 6
)

// Valid reports whether it is one to four numbers with points between them.
func (d Driver) Valid() bool { return d.numbers() != nil }

// AtLeast reports whether it is as new as another. A part that is left out is 0; what is no version is older than any.
func (d Driver) AtLeast(least Driver) bool { return slices.Compare(d.numbers(), least.numbers()) >= 0 }

// numbers are its parts, without zeros at the end but for the first; nil: it is no version.
func (d Driver) numbers() []int {
	parts := strings.Split(string(d), ".")
	if len(parts) > mostDriverParts {
		return nil
	}
	var all []int
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil || len(part) > mostDriverDigits {
			return nil
		}
		all = append(all, int(n))
	}
	for len(all) > 1 && all[len(all)-1] == 0 {
		all = all[:len(all)-1]
	}
	return all
}
