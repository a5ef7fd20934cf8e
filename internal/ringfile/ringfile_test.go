package ringfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/ringfile"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// readAll reads the records of all files of a folder, in order, and the first error.
func readAll(t *testing.T, folder string) (all []string, err error) {
	t.Helper()
	files, globErr := filepath.Glob(filepath.Join(folder, "*.json.gz"))
	require.NoError(t, globErr)
	for _, path := range files {
		for record, readErr := range ringfile.Read(path) {
			if readErr != nil {
				err = readErr
				break
			}
			all = append(all, string(record))
		}
	}
	return all, err
}

func sizeOf(t *testing.T, folder string) (sum int64) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		is, err := e.Info()
		require.NoError(t, err)
		sum += is.Size()
	}
	return sum
}

func TestTheNewestAreKeptWithinTheBound(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new", "records")
	r, err := ringfile.Open(folder, "cycles", 2048)
	require.NoError(t, err)
	for i := range 500 {
		require.NoError(t, r.Add(fmt.Appendf(nil, `{"n":%d}`, i), noon.Add(time.Duration(i)*time.Second)))
		require.LessOrEqual(t, sizeOf(t, folder), int64(2048))
	}
	require.NoError(t, r.Close())
	all, err := readAll(t, folder)
	require.NoError(t, err)
	require.Greater(t, len(all), 20)
	for i, record := range all {
		require.JSONEq(t, fmt.Sprintf(`{"n":%d}`, 500-len(all)+i), record)
	}
	var large *ringfile.TooLargeError
	noise := make([]byte, 0, 8192)
	for i := range 1500 {
		noise = fmt.Appendf(noise, "%x", i*i*7919)
	}
	require.ErrorAs(t, r.Add(noise, noon), &large)
	require.NoError(t, r.Add([]byte(`{}`), noon), "it goes on")
}

// A crash within a record costs that record alone, and the next process begins a file of its own.
func TestWhatACrashLeavesIsReadable(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r, err := ringfile.Open(folder, "cycles", 1<<20)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, r.Add(fmt.Appendf(nil, `{"n":%d}`, i), noon))
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	one := len(whole) / 3
	for cut := 1; cut < one; cut++ {
		require.NoError(t, os.WriteFile(files[0], whole[:len(whole)-cut], 0o600))
		all, err := readAll(t, folder)
		require.Len(t, all, 2)
		var bad *ringfile.FileError
		require.ErrorAs(t, err, &bad)
		require.ErrorContains(t, err, "ends within a record, after 2 whole ones")
		require.ErrorContains(t, err, files[0])
	}
	next, err := ringfile.Open(folder, "cycles", 1<<20)
	require.NoError(t, err)
	require.NoError(t, next.Add([]byte(`{"n":9}`), noon.Add(time.Hour)))
	all, err := readAll(t, folder)
	require.Error(t, err)
	require.Contains(t, all, "{\"n\":9}\n")
}

func TestWhatIsNoFileOfRecordsIsNamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{"empty": "", "text": "hello", "half": `{"a":`, "packed": "\x1f\x8bgarbage"} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		records := 0
		var last error
		for _, err := range ringfile.Read(path) {
			if last = err; err == nil {
				records++
			}
		}
		require.Zero(t, records)
		require.ErrorContains(t, last, path)
	}
	path := filepath.Join(folder, "plain")
	require.NoError(t, os.WriteFile(path, []byte("{\"n\":1}\n{\"n\":2}\n"), 0o600))
	var all []string
	for record, err := range ringfile.Read(path) {
		require.NoError(t, err)
		all = append(all, string(record))
	}
	require.Equal(t, []string{`{"n":1}`, `{"n":2}`}, all)
}

// A folder that cannot be written costs records, and nothing else.
func TestAFolderThatIsGone(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "records")
	r, err := ringfile.Open(folder, "cycles", 1<<20)
	require.NoError(t, err)
	require.NoError(t, os.Remove(folder))
	require.Error(t, r.Add([]byte(`{}`), noon))
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, r.Add([]byte(`{}`), noon))
}
