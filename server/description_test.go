package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// A route that answers GET answers HEAD with the same status and headers, and
// does not wait for a stream to end.
func TestHeadIsAnsweredLikeGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	s := w.listenHTTP()
	noRedirect := *s.Client()
	noRedirect.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask := func(method, path string) (int, http.Header, string) { // of the body a GET may stream, nothing is read
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+w.keys["root"])
		resp, err := noRedirect.Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		if method == http.MethodGet {
			return resp.StatusCode, resp.Header, ""
		}
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, resp.Header, string(text)
	}
	for _, route := range w.server.Routes() {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodGet {
			continue
		}
		path = strings.Replace(path, ":id", "lab", 1)
		want, wantHeader, _ := ask(http.MethodGet, path)
		status, header, text := ask(http.MethodHead, path)
		require.Empty(t, text, path)
		require.Equal(t, want, status, path)
		require.Equal(t, wantHeader.Get("Content-Type"), header.Get("Content-Type"), path)
		require.Equal(t, wantHeader.Get("ETag"), header.Get("ETag"), path)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/v1/plans": 405} {
		status, _, _ := ask(http.MethodHead, path)
		require.Equal(t, want, status, path)
	}
}

// PATCH takes a merge patch by its own name, and nothing else does.
func TestPatchesAreMergePatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	merge := "application/merge-patch+json"
	changed := ask[contract.Pool](w, "root", http.MethodPatch, "/v1/pools/lab", `{"max_nodes":3}`, "If-Match", `"1"`,
		"Content-Type", merge)
	require.Equal(t, 3, changed.MaxNodes)
	p := w.refuse("root", http.MethodPatch, "/v1/pools/lab", `{"max_nodes":null}`, "If-Match", `"2"`, "Content-Type",
		merge)
	require.Equal(t, contract.CodeValidationFailed, p.Code, "null would take the field away, which nothing here can be")
	require.Equal(t, "/max_nodes", p.Errors[0].Pointer)
	p = w.refuse("root", http.MethodPost, "/v1/pools", poolBody, "Content-Type", merge)
	require.Equal(t, contract.CodeUnsupportedMediaType, p.Code)
	p = w.refuse("root", http.MethodPatch, "/v1/pools/lab", `{}`, "If-Match", `"2"`, "Content-Type",
		"application/json-patch+json")
	require.Equal(t, contract.CodeUnsupportedMediaType, p.Code)
	for header, value := range map[string]string{"Content-Encoding": "gzip",
		"Content-Type": "application/json; charset=utf-16"} {
		p = w.refuse("root", http.MethodPost, "/v1/pools", poolBody, header, value)
		require.Equal(t, contract.CodeUnsupportedMediaType, p.Code, header)
	}
	ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools", strings.Replace(poolBody, "lab", "lab2", 1),
		"Content-Type", `application/json; charset="UTF-8"`, "Content-Encoding", "identity")
}

// An exchange that the description does not know is noticed: each of these spoils
// the description in one place.
func TestTheDescriptionIsCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	doc := w.server.Description()
	pool := doc.Paths["/v1/pools/{id}"].Get
	compared := func(path string, headers ...string) string {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer "+w.keys["root"])
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		out := &teeWriter{ResponseWriter: httptest.NewRecorder(), status: http.StatusOK}
		w.server.ServeHTTP(out, r)
		return strings.Join(described{t, doc, w.server}.compareExchange(r, out), "; ")
	}
	require.Empty(t, compared("/v1/pools/lab"))
	require.Equal(t, "the header Prefer of the request", compared("/v1/pools/lab", "Prefer", "wait=1"))
	delete(pool.Responses["200"].Headers, "ETag")
	require.Equal(t, "the header ETag", compared("/v1/pools/lab"))
	delete(pool.Responses["200"].Content, "application/json")
	require.Contains(t, compared("/v1/pools/lab"), "the media type application/json")
	doc.Components.Schemas.Map()["Build"].Properties["go_version"].Type = huma.TypeInteger
	require.Contains(t, compared("/v1/version"), "the body: ")
	delete(pool.Responses, "404")
	require.Equal(t, "the status", compared("/v1/pools/nowhere"))
	delete(doc.Paths, "/v1/whoami")
	require.Equal(t, "there is no such operation", compared("/v1/whoami"))
}
