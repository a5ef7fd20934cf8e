//go:build clouds

package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/forewarm/forewarm/internal/httpx"
)

// api is the API server, by the two clients that speak to it.
type api struct {
	core corev1client.CoreV1Interface
	// open speaks of kinds that are not built in, such as ProvisioningRequest.
	open dynamic.Interface
	// role is the label of the records that it reads and writes.
	role string
}

// newAPI reads the credentials. It asks the cluster for nothing.
func newAPI(c Config) (api, error) {
	config, err := c.restConfig()
	if err != nil {
		return api{}, err
	}
	config.Timeout = c.Timeout
	config.UserAgent = "forewarm"
	config.ContentType = "application/json"
	// The server's own priority and fairness decides who waits.
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return careful{next} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return api{}, fmt.Errorf("building the cluster's client: %w", err)
	}
	core, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return api{}, fmt.Errorf("building the cluster's client: %w", err)
	}
	open, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return api{}, fmt.Errorf("building the cluster's client: %w", err)
	}
	return api{core, open, roleRecord}, nil
}

func (c Config) restConfig() (*rest.Config, error) {
	if c.InCluster {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("reading the credentials of this pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: c.Context},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", c.Kubeconfig, err)
	}
	return config, nil
}

const (
	// mostBody is above a page of 500 large pods.
	mostBody  = 64 << 20
	mostWords = 4 << 10 // of a refusal
)

// careful bounds every answer, and hands each request to wait back to the
// caller: client-go would sleep through up to ten of them, while the control
// plane has a queue to wait in.
type careful struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c careful) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	noteDate(request.Context(), response.Header)
	response.Body = httpx.LimitBody(response.Body, mostBody)
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	words, err := io.ReadAll(io.LimitReader(response.Body, mostWords))
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	return waitAsked(response, seconds, words)
}

// waitAsked puts the time to wait where client-go reports it without obeying it.
func waitAsked(response *http.Response, seconds int, words []byte) (*http.Response, error) {
	status := metav1.Status{}
	if json.Unmarshal(words, &status) != nil || status.Kind != "Status" {
		status = metav1.Status{Message: string(words), Reason: metav1.StatusReasonServiceUnavailable}
		if response.StatusCode == http.StatusTooManyRequests {
			status.Reason = metav1.StatusReasonTooManyRequests
		}
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Status, status.Code = metav1.StatusFailure, int32(response.StatusCode)
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.RetryAfterSeconds = int32(seconds)
	body, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("rendering the server's refusal: %w", err)
	}
	response.Header.Del("Retry-After")
	response.Header.Set("Content-Type", "application/json")
	response.ContentLength = int64(len(body))
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
