package obs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/obs"
)

func TestScrubTextKeepsSecretsOut(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ssh: connect to host rack-7 port 22: refused":        "ssh: connect to host rack-7 port 22: refused",
		"GET https://bob:hunter2@rack/x failed":               "GET https://***@rack/x failed",
		"PASSWORD=hunter2 make":                               "PASSWORD=*** make",
		`{"api_key": "hunter2", "host": "a"}`:                 `{"api_key": "***", "host": "a"}`,
		"aws_secret_access_key: hunter2":                      "aws_secret_access_key: ***",
		"Authorization: Bearer hunter2hunter2":                "Authorization: Bearer ***",
		"key AKIAABCDEFGHIJKLMNOP is disabled":                "key *** is disabled",
		"-----BEGIN RSA PRIVATE KEY-----\nhunter2":            "-----BEGIN RSA PRIVATE KEY-----***",
		"the token was used for another machine":              "the token was used for another machine",
		"basic auth is not enabled":                           "basic auth is not enabled",
		"no machine m-0123456789abcdef0123456789abcdef there": "no machine m-0123456789abcdef0123456789abcdef there",
	} {
		require.Equal(t, want, obs.ScrubText(in))
	}
}
