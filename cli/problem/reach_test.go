package problem

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that was started at an address of its own is started there again.
func TestStartCommands(t *testing.T) {
	t.Parallel()
	const elsewhere = "forewarm status --server http://127.0.0.1:8787"
	for address, want := range map[string][]string{
		"http://127.0.0.1:8787/v1/pools": {"forewarm up", "forewarm contexts list"},
		"http://127.0.0.1:9000/v1/pools": {"forewarm up --listen 127.0.0.1:9000", elsewhere},
		"http://[::1]:9000/v1/pools":     {"forewarm up --listen [::1]:9000", elsewhere},
		"http://localhost:9000/v1":       {"forewarm up --listen localhost:9000", elsewhere},
		"https://gpus.example.com/v1":    {"forewarm contexts list", elsewhere},
	} {
		require.Equal(t, want, startCommands(&url.Error{URL: address, Err: errors.New("refused")}), address)
	}
	require.Equal(t, []string{"forewarm up", elsewhere}, startCommands(errors.New("another")))
	for address, want := range map[string][]string{ // whose port is taken
		"http://127.0.0.1:8787/v1/pools": {"forewarm status", "forewarm doctor"},
		"http://127.0.0.1:9000/v1/pools": {"forewarm status --server http://127.0.0.1:9000", "forewarm contexts list"},
	} {
		require.Equal(t, want, startCommands(&url.Error{URL: address, Err: context.DeadlineExceeded}), address)
	}
}
