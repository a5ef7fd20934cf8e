package migrations_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/migrations"
)

var update = flag.Bool("update", false, "add the migrations that are not yet in testdata/released.txt")

const released = "testdata/released.txt"

// TestReleasedMigrationsAreNeverEdited compares every released file with what it
// was. Databases that ran it would not run it again, and would differ for ever
// from those that are made anew.
func TestReleasedMigrationsAreNeverEdited(t *testing.T) {
	t.Parallel()
	sums := checksums(t)
	data, err := os.ReadFile(released)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	known := map[string]bool{}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		known[name] = true
		require.Equal(t, sum, sums[name],
			"migrations/%s was released and is not what it was. Take the edit back, and write it as a new file with the "+
				"next number in both folders; go test ./migrations -update then adds that file when it is released.",
			name)
	}
	if !*update {
		return
	}
	for name, sum := range sums {
		if !known[name] {
			lines = append(lines, sum+"  "+name)
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	require.NoError(t, os.WriteFile(released, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// TestBothDialectsHaveTheSameNumbers keeps a change from reaching one database only.
func TestBothDialectsHaveTheSameNumbers(t *testing.T) {
	t.Parallel()
	names := map[string][]string{}
	for name := range checksums(t) {
		dialect, file, _ := strings.Cut(name, "/")
		names[dialect] = append(names[dialect], file)
	}
	require.Len(t, names, 2)
	require.ElementsMatch(t, names["postgres"], names["sqlite"])
}

// checksums returns the SHA-256 of each migration by its path.
func checksums(t *testing.T) map[string]string {
	t.Helper()
	sums := map[string]string{}
	require.NoError(t, fs.WalkDir(migrations.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(migrations.FS, name)
		sum := sha256.Sum256(data)
		sums[name] = hex.EncodeToString(sum[:])
		return err
	}))
	return sums
}
