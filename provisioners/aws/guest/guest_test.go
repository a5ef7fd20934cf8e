package guest_test

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners/aws/guest"
)

// readParts reads a document as cloud-init does.
func readParts(t *testing.T, document []byte) (kinds, bodies []string) {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(string(document)))
	require.NoError(t, err)
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", kind)
	reader := multipart.NewReader(message.Body, parameters["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return kinds, bodies
		}
		require.NoError(t, err)
		body, err := io.ReadAll(part)
		require.NoError(t, err)
		kinds, bodies = append(kinds, part.Header.Get("Content-Type")), append(bodies, string(body))
	}
}

func TestUserData(t *testing.T) {
	t.Parallel()
	document, err := guest.UserData(90*time.Minute, []byte("#cloud-config\npackages: [htop]\n"), "#!/bin/sh\ndaemon\n")
	require.NoError(t, err)
	kinds, bodies := readParts(t, document)
	require.Equal(t, []string{"text/x-shellscript", "text/cloud-config", "text/x-shellscript"}, kinds)
	require.Equal(t, "#!/bin/sh\ndaemon\n", bodies[2], "the daemon comes last: what it needs may be installed before")
	require.Contains(t, bodies[0], "FOREWARM_UNCLAIMED_S=5400")
	require.Contains(t, bodies[0], "poweroff\nfi\nFOREWARM_END", "the script is whole")
	require.NotContains(t, bodies[0], "{{")
	require.Equal(t, "#cloud-config\npackages: [htop]\n", bodies[1])
	check := exec.CommandContext(t.Context(), "sh", "-n")
	check.Stdin = strings.NewReader(bodies[0])
	output, err := check.CombinedOutput()
	require.NoError(t, err, "%s", output)

	again, err := guest.UserData(90*time.Minute, []byte("#cloud-config\npackages: [htop]\n"), "#!/bin/sh\ndaemon\n")
	require.NoError(t, err)
	require.Equal(t, document, again, "the same token must mean the same bytes")
	kinds, _ = readParts(t, mustDocument(guest.UserData(time.Hour, []byte("#!/bin/sh\ntrue\n"), "")))
	require.Equal(t, []string{"text/x-shellscript", "text/x-shellscript"}, kinds)
}

func mustDocument(document []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return document
}

func TestUserDataThatIsRefused(t *testing.T) {
	t.Parallel()
	for want, extra := range map[string]string{
		"neither with #!":   "echo hello",
		"our own boundary":  "#!/bin/sh\n--forewarm-user-data\n",
		"EC2 takes 16384":   "#!/bin/sh\n" + strings.Repeat("#", guest.MaxUserData),
		"begins neither wi": "Content-Type: multipart/mixed",
	} {
		_, err := guest.UserData(time.Hour, []byte(extra), "")
		require.ErrorContains(t, err, want)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	require.Equal(t, "never", guest.Expiry(time.Time{}))
	require.Equal(t, "2026-03-02T08:00:00Z",
		guest.Expiry(time.Date(2026, 3, 2, 9, 0, 0, 5e8, time.FixedZone("", 3600))))
}

func TestFind(t *testing.T) {
	t.Parallel()
	line := func(json string) string {
		return "forewarm-gpus " + base64.StdEncoding.EncodeToString([]byte(json)) + "\r\n"
	}
	good := line(`{"v":1,"gpus":[{"uuid":"GPU-1","index":0,"name":"T4","memory_mib":15360,"ecc":0}]}`)
	for name, test := range map[string]struct {
		console string
		want    string
	}{
		"nothing":         {"[    0.000000] Linux version 6.8\r\n", ""},
		"one":             {"boot\r\n" + good + "login: ", "GPU-1"},
		"the last":        {good + line(`{"v":1,"gpus":[{"uuid":"GPU-2","index":0,"name":"T4"}]}`), "GPU-2"},
		"cut off":         {good + "forewarm-gpus eyJ2", "GPU-1"},
		"written across":  {good + "forewarm-gpus eyJ2[ 12.1] usb 1-1: new\r\n", "GPU-1"},
		"not base64":      {good + "forewarm-gpus =====\n", "GPU-1"},
		"not json":        {good + line("{"), "GPU-1"},
		"another version": {good + line(`{"v":2,"gpus":[]}`), "GPU-1"},
		"no uuid":         {good + line(`{"v":1,"gpus":[{"uuid":""}]}`), "GPU-1"},
		"a name too long": {good + line(`{"v":1,"gpus":[{"uuid":"x","name":"`+strings.Repeat("x", 200)+`"}]}`),
			"GPU-1"},
		"too many": {good + line(`{"v":1,"gpus":[`+strings.Repeat(`{"uuid":"x"},`, 64)+`{"uuid":"x"}]}`),
			"GPU-1"},
		"a negative index": {good + line(`{"v":1,"gpus":[{"uuid":"x","index":-1}]}`), "GPU-1"},
		"only the mark":    {"forewarm-gpus ", ""},
	} {
		report, found := guest.Find(test.console)
		require.Equal(t, test.want != "", found, name)
		if found {
			require.Equal(t, test.want, report.GPUs[0].UUID, name)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("forewarm-gpus eyJ2IjoxfQ==\n")
	f.Fuzz(func(t *testing.T, console string) {
		if report, found := guest.Find(console); found && len(report.GPUs) > 64 {
			t.Fatal("more GPUs than a machine has")
		}
	})
}
