//go:build clouds

package kubernetes_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
)

func quotaRefusal() *apitest.Refusal {
	return &apitest.Refusal{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: `pods "forewarm-1" is forbidden: exceeded quota: gpu-quota, ` +
			`requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8`,
	}
}

func TestRefusalsOfCreate(t *testing.T) {
	t.Parallel()
	type refusal = apitest.Refusal
	pod, record := usesOf("create", "pods"), usesOf("create", "configmaps")
	for what, test := range map[string]struct {
		on    []apitest.Use
		with  refusal
		kind  provisioners.Kind
		scope string
	}{
		"quota": {pod, *quotaRefusal(), provisioners.KindQuota, "gpu-quota"},
		"rights": {pod, refusal{Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: `pods is forbidden: User "x" cannot create resource "pods"`},
			provisioners.KindDenied, ""},
		"rights of records": {record, refusal{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "no"},
			provisioners.KindDenied, ""},
		"credentials": {record, refusal{Code: 401, Reason: metav1.StatusReasonUnauthorized,
			Message: "Unauthorized"}, provisioners.KindDenied, ""},
		"invalid": {pod, refusal{Code: 422, Reason: metav1.StatusReasonInvalid,
			Message: "spec.tolerations[0].effect: Unsupported value"}, provisioners.KindBadSpec, ""},
		"no namespace": {record, refusal{Code: 404, Reason: metav1.StatusReasonNotFound,
			Message: `namespaces "forewarm" not found`}, provisioners.KindBadSpec, ""},
		"throttled": {pod, *tooMany(), provisioners.KindThrottled, ""},
		"broken":    {pod, *serverUnavailable(), provisioners.KindUnknown, ""},
		"time-out": {pod, refusal{Code: 504, Reason: metav1.StatusReasonTimeout, Message: "request timed out"},
			provisioners.KindUnknown, ""},
		"a proxy": {pod, refusal{Code: 502, Message: "<html>Bad Gateway", Plain: true},
			provisioners.KindUnknown, ""},
		"a proxy's 404": {pod, refusal{Code: 404, Message: "404 page not found", Plain: true},
			provisioners.KindUnknown, ""},
		"broken before": {record, *serverUnavailable(), provisioners.KindTransient, ""},
	} {
		w := newWorld(t)
		w.server.Inject(apitest.Fault{On: test.on, Refuse: &test.with})
		_, err := w.Create(t.Context(), "token", w.testSpec())
		var typed *provisioners.Error
		require.ErrorAs(t, err, &typed, what)
		require.Equal(t, test.kind, typed.Kind, "%s: %v", what, err)
		require.Equal(t, test.scope, typed.Scope, what)
		require.Empty(t, w.listInstances(t), what)
		w.createInstance(t) // the token is still good
		require.Len(t, w.listPods(), 1, what)
	}
}

func TestTheServersWaitIsHandedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Inject(apitest.Fault{Refuse: tooMany()})
	_, err := w.List(t.Context(), "dep")
	var typed *provisioners.Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, 7*time.Second, typed.RetryAfter)
	require.ErrorContains(t, err, "Too many requests")
}

// Absence needs proof: a 404 that the API server did not write is none.
func TestAProxysNotFoundProvesNothing(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"configmaps", "pods", "nodes"} {
		w := newWorld(t)
		made := w.createRunning(t)
		w.server.Inject(apitest.Fault{
			On: usesOf("get", resource), Refuse: &apitest.Refusal{Code: http.StatusNotFound,
				Message: "404 page not found", Plain: true},
		})
		_, err := w.Get(t.Context(), made.ID)
		require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err), resource)
		w.requirePhase(t, made.ID, provisioners.Running)
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	cluster, err := kubernetes.New(testConfig(writeKubeconfig(t, server.URL)), clock.NewManual(start))
	require.NoError(t, err)
	spec := ofA100
	spec.Owner, spec.NodeID = "dep", "nod_1"
	_, err = cluster.Create(t.Context(), "token", spec)
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
	_, err = cluster.Get(t.Context(), "forewarm/forewarm-0/0")
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
}

// Every step of every call fails once: whatever it was, the call says something
// typed, and afterwards everything can be finished.
func TestEveryStepCanFail(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"get", "list", "create", "update", "patch", "delete"} {
		for _, resource := range []string{"configmaps", "pods", "nodes", "events"} {
			for _, cut := range []bool{false, true} {
				if cut && (verb == "get" || verb == "list") {
					continue // client-go repeats a read whose connection broke, and sleeps
				}
				everyCallFails(t, apitest.Fault{On: usesOf(verb, resource), Cut: cut})
			}
		}
	}
}

func everyCallFails(t *testing.T, fault apitest.Fault) {
	w := newWorld(t)
	if !fault.Cut {
		fault.Refuse = serverUnavailable()
	}
	failing := func(call func() error) {
		w.server.Heal()
		w.server.Inject(fault)
		if err := call(); err != nil {
			require.NotEqual(t, provisioners.KindNotFound, provisioners.KindOf(err))
			require.ErrorAs(t, err, new(*provisioners.Error))
		}
		w.server.Heal()
	}
	spec := w.testSpec()
	spec.ExpiresAt = start.Add(24 * time.Hour)
	failing(func() error { _, err := w.Create(t.Context(), "token", spec); return err })
	made := w.createInstance(t)
	w.advanceClock(2 * time.Minute)
	failing(func() error { _, err := w.Get(t.Context(), made.ID); return err })
	failing(func() error { _, err := w.List(t.Context(), "dep"); return err })
	failing(func() error { return w.Renew(t.Context(), made.ID, start.Add(48*time.Hour)) })
	w.requirePhase(t, made.ID, provisioners.Running)
	failing(func() error { return w.Delete(t.Context(), made.ID) })
	require.NoError(t, w.Delete(t.Context(), made.ID))
	w.advanceClock(10 * time.Second)
	w.requirePhase(t, made.ID, provisioners.Terminated)
	require.Empty(t, w.listPods(), "%+v", fault)
}
