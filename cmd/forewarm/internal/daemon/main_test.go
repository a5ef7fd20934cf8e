package daemon

import (
	"os"
	"strings"
	"testing"
)

// The settings of whoever runs the tests are none of the tests'.
func TestMain(m *testing.M) {
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "FOREWARM_") &&
			!strings.HasPrefix(name, "FOREWARM_TEST_") {
			if err := os.Unsetenv(name); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}
