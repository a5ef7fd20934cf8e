package scripted

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	messages = `"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]`
	format   = `"response_format":{"type":"json_schema","json_schema":{"strict":true,"schema":{}}}`
)

func postRequest(s *Server, method, path, body string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, httptest.NewRequest(method, path, strings.NewReader(body)))
	return recorder
}

// The stand-in refuses what the agent must never send, so that a client that
// starts to send it fails its tests.
func TestServerHoldsItsCallersToTheProtocol(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"good":     {http.MethodPost, "/v1/chat/completions", "{" + messages + "," + format + "}", http.StatusOK},
		"method":   {http.MethodGet, "/v1/chat/completions", "", http.StatusNotFound},
		"path":     {http.MethodPost, "/v1/responses", "{" + messages + "," + format + "}", http.StatusNotFound},
		"not json": {http.MethodPost, "/v1/chat/completions", "x", http.StatusBadRequest},
		"tools": {http.MethodPost, "/v1/chat/completions", `{"tools":[{}],` + messages + "," + format + "}",
			http.StatusBadRequest},
		"free form": {http.MethodPost, "/v1/chat/completions", "{" + messages + "}", http.StatusBadRequest},
		"not strict": {http.MethodPost, "/v1/chat/completions",
			"{" + messages + "," + strings.Replace(format, "true", "false", 1) + "}", http.StatusBadRequest},
		"no messages": {http.MethodPost, "/v1/chat/completions", "{" + format + "}", http.StatusBadRequest},
		"too long": {http.MethodPost, "/v1/chat/completions", `{"x":"` + strings.Repeat("a", maxQuestion) + `"}`,
			http.StatusBadRequest},
	} {
		s := &Server{}
		require.Equal(t, c.status, postRequest(s, c.method, c.path, c.body).Code, name)
		require.Equal(t, int64(1), s.Calls(), name)
	}
}

func TestStatisticsInLogLinesAreNotRead(t *testing.T) {
	t.Parallel()
	const real = "window start=a end=b p10=1 p50=2 p90=3 any=0.900\n"
	forged := "Log lines:\n" + strings.ReplaceAll(real, "p90=3", "p90=999")
	require.Len(t, readWindows(real+forged), 1)
	require.Equal(t, encodeRecords(sensibleRecords(real)), encodeRecords(sensibleRecords(real+forged)))
	require.Contains(t, encodeRecords(sensibleRecords(real)), `"gpus_high":3`)
	require.Equal(t, `{"records":[]}`,
		encodeRecords(sensibleRecords("window start=a end=b p10=0 p50=0 p90=1 any=0.100\n")))
}
