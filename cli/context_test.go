package cli

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/exit"
)

// newListeningServer is a server that notes who asks it: the path and the key.
func newListeningServer(t *testing.T) (url string, asked func() []string) {
	t.Helper()
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all = append(all, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string { was := all; all = nil; return was }
}

// TestWhichServer tells by two servers who is asked with which key, when flags,
// the environment and contexts name one beside another.
func TestWhichServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env          map[string]string
		args         []string
		ada, bob     bool   // who is asked
		key, refused string // with which key, or why not
	}{
		"a context": {args: []string{"--context", "ada"}, ada: true, key: "Bearer a"},
		"the environment's context": {env: map[string]string{"FOREWARM_CONTEXT": "ada"}, ada: true,
			key: "Bearer a"},
		"the flag before the context in use": {args: []string{"--server", "ADA"}, ada: true, key: "Bearer a"},
		"the same server beside a context": {args: []string{"--server", "ADA/", "--context", "ada"}, ada: true,
			key: "Bearer a"},
		"another server beside a context": {args: []string{"--server", "BOB", "--context", "ada"},
			refused: "--server BOB is not the server of context \"ada\""},
		"another beside the environment's": {env: map[string]string{"FOREWARM_CONTEXT": "ada"},
			args: []string{"--server", "BOB"}, refused: "--context bob"},
		"both in the environment": {env: map[string]string{"FOREWARM_CONTEXT": "ada",
			"FOREWARM_API": "BOB"}, refused: "FOREWARM_API BOB is not"},
		"a server that no context has": {env: map[string]string{"FOREWARM_CONTEXT": "ada"},
			args: []string{"--server", "http://127.0.0.1:1"}, refused: "forewarm login --server http://127.0.0.1:1"},
		"another server with a key": {env: map[string]string{"FOREWARM_CONTEXT": "ada",
			"FOREWARM_API_KEY": "mine"}, args: []string{"--server", "BOB"}, bob: true, key: "Bearer mine"},
		"the flag before the environment's": {env: map[string]string{"FOREWARM_API": "BOB"},
			args: []string{"--context", "ada"}, ada: true, key: "Bearer a"},
		"the address before the context used": {env: map[string]string{"FOREWARM_API": "ADA"}, ada: true,
			key: "Bearer a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(t)
			ada, askedAda := newListeningServer(t)
			bob, askedBob := newListeningServer(t)
			real := map[string]string{"ADA": ada, "ADA/": ada + "/", "BOB": bob}
			of := func(word string) string { return cmp.Or(real[word], word) }
			w.env = map[string]string{"XDG_CONFIG_HOME": w.env["XDG_CONFIG_HOME"]}
			path := filepath.Join(w.env["XDG_CONFIG_HOME"], "forewarm", "contexts.yaml")
			require.NoError(t,
				contextfile.Write(path, contextfile.File{Current: "bob",
					Contexts: map[string]contextfile.Context{"ada": {Server: ada, Key: "a"},
						"bob": {Server: bob, Key: "b"}}}))
			for k, v := range c.env {
				w.env[k] = of(v)
			}
			args := []string{"api", "GET", "/v1/whoami"}
			for _, arg := range c.args {
				args = append(args, of(arg))
			}
			_, errs, code := w.runCommand(args...)
			if c.refused != "" {
				require.Equal(t, exit.Usage, code)
				require.Contains(t, errs, strings.ReplaceAll(c.refused, "BOB", bob))
			}
			require.Equal(t, keysAsked(c.ada, c.key), askedAda())
			require.Equal(t, keysAsked(c.bob, c.key), askedBob())
		})
	}
}

func keysAsked(asked bool, key string) []string {
	if !asked {
		return nil
	}
	return []string{key}
}

// What holds no key is named, and what to type next is for the same server.
func TestLoginSaysWhereThereIsNoKey(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.stdin = "\n"
	delete(w.env, "FOREWARM_API_KEY")
	_, errs, code := w.runCommand("login", "--server", w.url, "--key-file", "-")
	require.Equal(t, exit.Login, code)
	require.Equal(t, "Error: --key-file: there is no key in standard input\n"+
		"Next:  forewarm login --server "+w.url+" --key-file FILE\n", errs)
	empty := filepath.Join(t.TempDir(), "empty.key")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, errs, _ = w.runCommand("login", "--key-file", empty)
	require.Contains(t, errs, "there is no key in "+empty)
	_, errs, code = w.runCommand("status", "--server", w.url+"/")
	require.Equal(t, exit.Login, code)
	require.Contains(t, errs, "Next:  forewarm login --server "+w.url+"/ --key-file FILE\n")
}

// A key may be saved for another server whatever context is in use.
func TestLoginBesideAContext(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	path := filepath.Join(w.env["XDG_CONFIG_HOME"], "forewarm", "contexts.yaml")
	require.NoError(t,
		contextfile.Write(path,
			contextfile.File{
				Contexts: map[string]contextfile.Context{"ada": {Server: "http://127.0.0.1:1", Key: "a"}}}))
	w.env["FOREWARM_CONTEXT"], w.env["FOREWARM_API"], w.env["FOREWARM_API_KEY"], w.stdin = "ada", "", "", w.secret
	w.mustRun("login", "--server", w.url, "--key-file", "-", "--name", "lab")
	require.Contains(t, w.mustRun("status", "--context", "lab"), w.url)
}
