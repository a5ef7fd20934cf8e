package traces

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/backtest"
)

const header = "job_id,user,group,submit_ts,duration_s,gpus,status\n"

func write(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRead(t *testing.T) {
	t.Parallel()
	text := header + "j1,ann,vision,100,60,4,Pass\nj2,bob,speech,160,30,1,Failed\nj3,ann,vision,160,5,2,Pass\n"
	want := backtest.Trace{Tenants: []string{"vision", "speech"}, Jobs: []backtest.Job{
		{ID: "j1", Submit: 100, Duration: 60, GPUs: 4}, {ID: "j2", Submit: 160, Duration: 30, GPUs: 1, Tenant: 1},
		{ID: "j3", Submit: 160, Duration: 5, GPUs: 2},
	}}
	plain, err := Read(write(t, "a.csv", text))
	require.NoError(t, err)
	require.Equal(t, want, plain)

	path := filepath.Join(t.TempDir(), "a.csv.gz")
	file, err := os.Create(path)
	require.NoError(t, err)
	packed := gzip.NewWriter(file)
	_, err = packed.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, packed.Close())
	require.NoError(t, file.Close())
	unpacked, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, want, unpacked)
}

func TestReadNamesTheRowThatIsWrong(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		header + "j1,ann,vision,100,60,4,Pass\nj2,ann,vision,soon,60,4,Pass\n": "row 3: column 4",
		header + "j1,ann,vision,100,60,many,Pass\n":                            "row 2: column 6",
		"job_id,user,group\nj1,ann,vision\n":                                   "row 2: 3 columns",
		header + "j1,ann,vision,100,60,4\n":                                    "reading the trace",
		header + "j1,ann,vision,100,60,1,Pass\nj2,ann,vision,99,60,1,Pass\n":   "submitted before",
	} {
		_, err := Read(write(t, "a.csv", text))
		require.ErrorContains(t, err, says, text)
	}
	_, err := Read(write(t, "a.csv.gz", header))
	require.ErrorContains(t, err, "unpacking the trace")
	_, err = Read(filepath.Join(t.TempDir(), "none.csv"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestListFindsTracesInFolders(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"b.csv.gz", "a.csv", "README.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	alone := write(t, "zz.csv", header)
	all, err := List(folder + "," + alone)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{filepath.Join(folder, "a.csv"), filepath.Join(folder, "b.csv.gz"), alone}, all)
	require.IsIncreasing(t, all)
	_, err = List(filepath.Join(folder, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	none, err := List("")
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestName(t *testing.T) {
	t.Parallel()
	require.Equal(t, "philly", Name("/some/where/philly.csv.gz"))
	require.Equal(t, "itp.even", Name("itp.even.csv"))
}
