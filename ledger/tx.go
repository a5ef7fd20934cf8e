package ledger

import (
	"strings"
)

// ClipText keeps names that people give from breaking lines and tables.
func ClipText(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
