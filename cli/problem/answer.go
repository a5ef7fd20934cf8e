package problem

import (
	"bytes"
	"io"
	"net/http"

	"github.com/forewarm/forewarm/client"
)

// OfAnswer is the problem in an answer whose body has been read; nil when it has Succeeded.
func OfAnswer(resp *http.Response, body []byte) error {
	if client.Succeeded(resp) {
		return nil
	}
	again := *resp
	again.Body = io.NopCloser(bytes.NewReader(body))
	return client.ReadProblem(&again)
}
