//go:build clouds

package gcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/statefile/statefiletest"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/gcp"
	"github.com/forewarm/forewarm/provisioners/gcp/gcetest"
)

func kindOf(t *testing.T, err error) *provisioners.Error {
	t.Helper()
	var typed *provisioners.Error
	require.ErrorAs(t, err, &typed)
	return typed
}

// The codes of errors inside operations, as Google, the cluster autoscaler and
// others' incidents name them.
func TestOperationErrors(t *testing.T) {
	t.Parallel()
	const stock = zone + "/a3-highgpu-8g"
	for code, want := range map[string]struct {
		kind  provisioners.Kind
		scope string
	}{
		"ZONE_RESOURCE_POOL_EXHAUSTED":              {provisioners.KindCapacity, stock},
		"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": {provisioners.KindCapacity, stock},
		"RESOURCE_POOL_EXHAUSTED":                   {provisioners.KindCapacity, stock},
		"INSUFFICIENT_CAPACITY":                     {provisioners.KindCapacity, stock},
		"RESERVATION_CAPACITY_EXCEEDED":             {provisioners.KindCapacity, stock},
		"RESERVATION_NOT_READY":                     {provisioners.KindCapacity, stock},
		"RESERVATION_NOT_FOUND":                     {provisioners.KindBadSpec, ""},
		"RESERVATION_INCOMPATIBLE":                  {provisioners.KindBadSpec, ""},
		"INVALID_RESERVATION":                       {provisioners.KindBadSpec, ""},
		"QUOTA_EXCEEDED":                            {provisioners.KindQuota, "NVIDIA_H100_GPUS"},
		"IP_SPACE_EXHAUSTED":                        {provisioners.KindQuota, "NVIDIA_H100_GPUS"},
		"IP_SPACE_EXHAUSTED_WITH_DETAILS":           {provisioners.KindQuota, "NVIDIA_H100_GPUS"},
		"PERMISSIONS_ERROR":                         {provisioners.KindDenied, ""},
		"SERVICE_ACCOUNT_ACCESS_DENIED":             {provisioners.KindDenied, ""},
		"CONDITION_NOT_MET":                         {provisioners.KindDenied, ""},
		"RESOURCE_OPERATION_RATE_EXCEEDED":          {provisioners.KindThrottled, ""},
		"RESOURCE_NOT_FOUND":                        {provisioners.KindBadSpec, ""},
		"INVALID_USAGE":                             {provisioners.KindBadSpec, ""},
		"UNSUPPORTED_OPERATION":                     {provisioners.KindBadSpec, ""},
		"RESOURCE_NOT_READY":                        {provisioners.KindTransient, ""},
		"INTERNAL_ERROR":                            {provisioners.KindTransient, ""},
		"SERVICE_UNAVAILABLE":                       {provisioners.KindTransient, ""},
		"SOMETHING_NEW":                             {provisioners.KindUnknown, ""},
	} {
		w := newWorld(t)
		w.cloud.Inject(gcetest.Fault{Call: gcetest.Insert, Effect: gcetest.Fail, Reason: code,
			QuotaMetric: "NVIDIA_H100_GPUS"})
		_, err := w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
		got := kindOf(t, err)
		require.Equal(t, want.kind, got.Kind, code)
		require.Equal(t, want.scope, got.Scope, code)
		require.Contains(t, got.Message, code)
		if provisioners.Final(err) { // a late duplicate is told the same, and makes nothing
			_, err = w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
			require.Equal(t, want.kind, provisioners.KindOf(err), code)
		}
		require.Zero(t, w.cloud.Live(), code)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status  int
		reason  string
		message string
		insert  provisioners.Kind
		read    provisioners.Kind
		scope   string
	}{
		"too many":       {429, "rateLimitExceeded", "", provisioners.KindThrottled, provisioners.KindThrottled, ""},
		"too many, 403":  {403, "rateLimitExceeded", "", provisioners.KindThrottled, provisioners.KindThrottled, ""},
		"no rights":      {403, "forbidden", "", provisioners.KindDenied, provisioners.KindDenied, ""},
		"API is off":     {403, "accessNotConfigured", "", provisioners.KindDenied, provisioners.KindDenied, ""},
		"no credentials": {401, "authError", "", provisioners.KindDenied, provisioners.KindDenied, ""},
		"quota": {403, "quotaExceeded", "Quota 'NVIDIA_H100_GPUS' exceeded. Limit: 0.0",
			provisioners.KindQuota, provisioners.KindQuota, "NVIDIA_H100_GPUS"},
		"invalid":        {400, "invalid", "", provisioners.KindBadSpec, provisioners.KindBadSpec, ""},
		"no such image":  {404, "notFound", "", provisioners.KindBadSpec, "", ""},
		"not ready":      {400, "resourceNotReady", "", provisioners.KindTransient, provisioners.KindTransient, ""},
		"constraint":     {412, "conditionNotMet", "", provisioners.KindDenied, provisioners.KindTransient, ""},
		"server error":   {500, "backendError", "", provisioners.KindUnknown, provisioners.KindTransient, ""},
		"unavailable":    {503, "backendError", "", provisioners.KindUnknown, provisioners.KindTransient, ""},
		"conflict":       {409, "conflict", "", provisioners.KindUnknown, provisioners.KindTransient, ""},
		"a redirect":     {302, "moved", "", provisioners.KindUnknown, provisioners.KindTransient, ""},
		"nobody foresaw": {418, "teapot", "", provisioners.KindUnknown, provisioners.KindTransient, ""},
	} {
		w := newWorld(t)
		w.cloud.Inject(
			gcetest.Fault{Call: gcetest.Insert, Effect: gcetest.Refuse, Status: test.status, Reason: test.reason,
				Message: test.message, RetryAfter: 9 * time.Second},
			gcetest.Fault{Call: gcetest.AggregatedList, Effect: gcetest.Refuse, Status: test.status,
				Reason: test.reason, Message: test.message},
		)
		_, err := w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
		got := kindOf(t, err)
		require.Equal(t, test.insert, got.Kind, name)
		require.Equal(t, test.scope, got.Scope, name)
		if got.Kind == provisioners.KindThrottled {
			require.Equal(t, 9*time.Second, got.RetryAfter)
		}
		_, err = w.List(t.Context(), "deployment-a")
		if test.read != "" {
			require.Equal(t, test.read, provisioners.KindOf(err), name)
		}
		w.createInstance(t, "token-1") // nothing was made, and the token is good
	}
}

// Nobody listens: nothing was sent, so nothing was made.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createInstance(t, "token-1")
	w.server.Close()
	_, err := w.Create(t.Context(), "token-2", testSpec("h100-8", zone))
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
	_, err = w.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(w.Delete(t.Context(), made.ID)))
}

// An answer that makes no sense proves nothing.
func TestNonsense(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"empty": "", "html": "<html>", "other JSON": `{"kind":"x"}`,
		"cut": `{"name":"fw-`, "list": "[]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.config.StateFile = ""
			proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.cloud.ServeHTTP(httptest.NewRecorder(), r)
					_, _ = out.Write([]byte(answer))
					return
				}
				w.cloud.ServeHTTP(out, r)
			}))
			t.Cleanup(proxy.Close)
			w.config.Endpoint = proxy.URL
			w.reopenCloud(t)
			_, err := w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
			require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err))
			w.config.Endpoint = w.server.URL
			w.reopenCloud(t)
			w.createInstance(t, "token-1")
			require.Equal(t, 1, w.cloud.Live())
		})
	}
}

// The call ends in the middle: the machine may be.
func TestContextEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	slow := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body) // until then a server does not see its client leave
			cancel()
			<-r.Context().Done()
			return
		}
		w.cloud.ServeHTTP(out, r)
	}))
	t.Cleanup(slow.Close)
	w.config.Endpoint = slow.URL
	w.reopenCloud(t)
	_, err := w.Create(ctx, "token-1", testSpec("h100-8", zone))
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err))
	require.ErrorIs(t, err, context.Canceled)
}

func TestCredentialsThatAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Endpoint = "https://127.0.0.1:9/compute/v1/"
	file := filepath.Join(t.TempDir(), "key.json")
	for name, text := range map[string]string{"missing": "", "no JSON": "secret",
		"other type": `{"type":"gdch_service_account","private_key":"secret"}`} {
		w.config.CredentialsFile = file
		require.NoError(t, os.RemoveAll(file))
		if text != "" {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
		w.reopenCloud(t)
		_, err := w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
		require.Equal(t, provisioners.KindDenied, provisioners.KindOf(err), name)
		require.ErrorContains(t, err, "credentials_file", name)
		require.NotContains(t, err.Error(), "secret", name)
	}
}

// A disk that is full is said where it matters, and blinds nobody.
func TestUnsavedMachineIsNotConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unblock := statefiletest.Block(t, w.config.StateFile)
	for range 2 {
		_, err := w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
		require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err))
	}
	list, err := w.List(t.Context(), "deployment-a")
	require.NoError(t, err)
	require.Len(t, list.Instances, 1)
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(w.Delete(t.Context(), list.Instances[0].ID)))
	unblock()
	require.Equal(t, list.Instances[0].ID, w.createInstance(t, "token-1").ID)
}

func TestDamagedStateIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createInstance(t, "token-1")
	whole, err := os.ReadFile(w.config.StateFile)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"cut":           string(whole[:len(whole)/2]),
		"empty":         "",
		"other version": `{"Version":2,"Records":null}`,
		"no token":      `{"Version":1,"Records":[{"ID":"us-central1-a/fw-1/1"}]}`,
		"no id":         `{"Version":1,"Records":[{"Token":"t","ID":"x"}]}`,
		"null":          `{"Version":1,"Records":[null]}`,
	} {
		require.NoError(t, os.WriteFile(w.config.StateFile, []byte(text), 0o600))
		_, err := gcp.New(w.config, w.clock)
		require.ErrorContains(t, err, w.config.StateFile, name)
	}
}
