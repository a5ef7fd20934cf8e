package problem

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// OfAnswer is the problem in an answer; nil when it is none.
func OfAnswer(status int, answer []byte) error {
	if status < http.StatusBadRequest {
		return nil
	}
	p := contract.Problem{}
	if err := json.Unmarshal(answer, &p); err != nil || p.Code == "" {
		p = contract.Problem{Title: fmt.Sprintf("the server answered %d", status)}
	}
	p.Status = status
	return &client.Error{Problem: p}
}
