package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/strictyaml"
)

// What is wrong with a variable or a flag is told of it, and not of a file that does not have it.
func TestErrorsNameTheVariable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forewarm.yaml")
	require.NoError(t, os.WriteFile(path, []byte("# one\n# two\nlisten: nonsense\nserver: {peers_address: one}\n"), 0o600))
	said := func(t *testing.T, f flags) string {
		t.Helper()
		cfg, err := f.readConfig()
		if err == nil {
			_, err = loadPepper(cfg)
		}
		var bad *strictyaml.Error
		require.ErrorAs(t, err, &bad)
		return bad.Error()
	}
	require.Contains(t, said(t, flags{config: path}), "forewarm.yaml:3: listen: ", "nothing but the file sets it")
	for name, value := range map[string]string{
		"FOREWARM_LISTEN": "nonsense", "FOREWARM_METRICS_LISTEN": "nonsense", "FOREWARM_DATABASE": "mysql://x",
		"FOREWARM_REDIS": "http://x", "FOREWARM_PEPPER": "short", "FOREWARM_TRUSTED_PROXIES": "x",
		"FOREWARM_SERVER_METRICS_LISTEN": "nonsense", "FOREWARM_SERVER_PEERS_LISTEN": "nonsense",
		"FOREWARM_SERVER_PEERS_ADDRESS": "a b", "FOREWARM_PUBLIC_URL": "x", "FOREWARM_DOWNLOAD_DIR": t.TempDir(),
	} {
		for _, file := range []string{"", path} {
			t.Run(name+filepath.Base(file), func(t *testing.T) {
				t.Setenv("FOREWARM_LISTEN", "127.0.0.1:0")
				t.Setenv(name, value)
				require.Regexp(t, "^"+name+": .*\n  fix: ", said(t, flags{config: file}))
			})
		}
	}
	require.Regexp(t, "^--listen: ", said(t, flags{config: path, listen: "nonsense"}))
	t.Setenv("FOREWARM_LISTEN", "127.0.0.1:0")
	require.Regexp(t, "^--listen: ", said(t, flags{config: path, listen: "nonsense"}), "the flag goes before the variable")
}
