package server_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server"
)

const offered = "forewarm-node-linux-amd64"

// handOut returns a world that hands out a program, and the program's path.
func handOut(t *testing.T, text string) (*world, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return newWorld(t, func(c *server.Config) { c.Downloads = map[string]string{offered: path} }), path
}

func TestProgramsAreHandedOut(t *testing.T) {
	t.Parallel()
	w, path := handOut(t, "the whole program")
	got := w.send("", http.MethodGet, "/download/"+offered, "")
	require.Equal(t, 200, got.Code)
	require.Equal(t, "the whole program", got.Body.String())
	require.Equal(t, "application/octet-stream", got.Header().Get("Content-Type"))
	require.Equal(t, "17", w.send("", http.MethodHead, "/download/"+offered, "").Header().Get("Content-Length"))
	rest := w.send("", http.MethodGet, "/download/"+offered, "", "Range", "bytes=10-")
	require.Equal(t, 206, rest.Code, "a download that was cut is continued")
	require.Equal(t, "program", rest.Body.String())

	require.Equal(t, 416, w.send("", http.MethodGet, "/download/"+offered, "", "Range", "bytes=99-").Code)

	for _, other := range []string{"program", "forewarm-node-linux-arm64", "..%2f" + filepath.Base(path)} {
		p := w.refuse("", http.MethodGet, "/download/"+other, "")
		require.Contains(t, []string{contract.CodeNotFound, contract.CodeValidationFailed}, p.Code, other)
	}
	none := newWorld(t).refuse("", http.MethodGet, "/download/"+offered, "")
	require.Equal(t, contract.CodeNotFound, none.Code)
	require.Contains(t, none.Fixes[0].Label, "server.download_dir")

	require.NoError(t, os.Remove(path))
	require.Equal(t, contract.CodeNotFound, w.refuse("", http.MethodGet, "/download/"+offered, "").Code)
	require.NotContains(t, w.log.String(), "panicked", "nobody fills the log by asking for it")
}

// slowTaker takes nothing of an answer until it is let.
type slowTaker struct {
	*httptest.ResponseRecorder
	taking chan<- bool
	let    <-chan bool
}

func (s slowTaker) Write(p []byte) (int, error) {
	s.taking <- true
	<-s.let
	return s.ResponseRecorder.Write(p)
}

func TestDownloadsOfOneNetworkAreBounded(t *testing.T) {
	t.Parallel()
	w, _ := handOut(t, strings.Repeat("x", 1<<10))
	taking, let, over := make(chan bool), make(chan bool), make(chan bool)
	for range 16 {
		go func() {
			r := httptest.NewRequest(http.MethodGet, "http://localhost/download/"+offered, nil)
			w.server.ServeHTTP(slowTaker{httptest.NewRecorder(), taking, let}, r)
			over <- true
		}()
		<-taking
	}
	p := w.refuse("", http.MethodGet, "/download/"+offered, "")
	require.Equal(t, contract.CodeRateLimited, p.Code)
	close(let)
	for range 16 {
		<-over
	}
	require.Equal(t, 200, w.send("", http.MethodGet, "/download/"+offered, "").Code)
}
