package app_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/app"
)

// Who sends a key over plain HTTP to another machine is told so once; nobody else is.
func TestPlainKeysAreTold(t *testing.T) {
	t.Parallel()
	for server, want := range map[string][]string{
		"http://192.0.2.2:18391": {"192.0.2.2:18391"}, "http://forewarm.example": {"forewarm.example"},
		"https://forewarm.example": nil, "http://localhost:1": nil, "http://127.0.0.1:1": nil, "http://[::1]:1": nil,
	} {
		var told []string
		env := map[string]string{"FOREWARM_API": server, "FOREWARM_API_KEY": "fw_key", "XDG_CONFIG_HOME": t.TempDir()}
		a := &app.App{World: app.World{Getenv: func(n string) string { return env[n] }},
			OnPlainKey: func(host string) { told = append(told, host) }}
		for range 2 {
			_, err := a.Target()
			require.NoError(t, err)
		}
		require.Equal(t, want, told, server)
	}
}

// A variable that is set to nothing, as by a secret that is missing, is told once: what was saved counts then.
func TestEmptyVariablesAreTold(t *testing.T) {
	t.Parallel()
	env := map[string]string{"FOREWARM_API": "http://localhost:1", "FOREWARM_API_KEY": "", "FOREWARM_CONTEXT": "",
		"XDG_CONFIG_HOME": t.TempDir()}
	var told []string
	a := &app.App{World: app.World{Getenv: func(n string) string { return env[n] },
		IsSet: func(n string) bool { _, is := env[n]; return is }},
		OnEmptyVariable: func(name string) { told = append(told, name) }}
	for range 2 {
		_, err := a.Target()
		require.NoError(t, err)
	}
	require.Equal(t, []string{"FOREWARM_CONTEXT", "FOREWARM_API_KEY"}, told)
}
