package client_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// What is sent unpacks itself where it is run, and the command reads its own input.
func TestAJobFindsItsFiles(t *testing.T) {
	t.Parallel()
	files := client.JobFiles{Files: []client.JobFile{{Name: "conf/a b.yaml", Data: []byte("x: 1\n")},
		{Name: "go.sh", Data: []byte("#!/bin/sh\necho \"$1\" $(cat 'conf/a b.yaml') $(cat) $(cat $TOKEN_FILE)\n"),
			Executable: true}}, Secrets: map[string][]byte{"TOKEN": []byte("s3cret")}}
	for input, want := range map[string]string{"the input": "a'b x: 1 the input s3cret\n", "": "a'b x: 1 s3cret\n"} {
		in, err := files.AddTo(contract.JobCreate{Command: []string{"./go.sh", "a'b"}, Input: []byte(input)})
		require.NoError(t, err)
		again, err := files.AddTo(contract.JobCreate{Command: []string{"./go.sh", "a'b"}, Input: []byte(input)})
		require.NoError(t, err)
		require.Equal(t, in, again, "a repetition is the same request")
		for _, word := range in.Command {
			require.NotContains(t, word, "s3cret")
		}
		dir := t.TempDir()
		run := exec.CommandContext(t.Context(), in.Command[0], in.Command[1:]...)
		run.Dir, run.Stdin = dir, bytes.NewReader(in.Input)
		out, err := run.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, want, string(out))
		secret, err := os.Stat(filepath.Join(dir, ".forewarm/secrets/TOKEN"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o400), secret.Mode().Perm())
	}
}

func TestFilesThatNoJobCanHave(t *testing.T) {
	t.Parallel()
	large := make([]byte, client.MostJobInput)
	_, _ = rand.Read(large)
	in := contract.JobCreate{Command: []string{"true"}}
	same, err := client.JobFiles{}.AddTo(in)
	require.NoError(t, err)
	require.Equal(t, in, same)
	for says, files := range map[string]client.JobFiles{
		"may have 196608":    {Files: []client.JobFile{{Name: "large", Data: large}}},
		"below the job's":    {Files: []client.JobFile{{Name: "../up"}}},
		"path below":         {Files: []client.JobFile{{Name: "/etc/passwd"}}},
		"is the job's own":   {Files: []client.JobFile{{Name: ".forewarm/input"}}},
		"two files":          {Files: []client.JobFile{{Name: "a"}, {Name: "a"}}},
		"name of a variable": {Secrets: map[string][]byte{"A-B": nil}},
	} {

		_, err := files.AddTo(in)
		require.ErrorContains(t, err, says)
	}
	in.Directory = "/data"
	_, err = client.JobFiles{Files: []client.JobFile{{Name: "a"}}}.AddTo(in)
	require.ErrorContains(t, err, "leave out its directory")
}
