//go:build race

package verbs_test

import (
	"flag"
	"os"
	"testing"
)

// thorough: here too few histories are lived through to meet everything.
const thorough = false

// The race detector makes a history ten times as long, and what it looks for does
// not hang on how many there are.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
