package problem

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// fromBatch names every item because of which nothing of a batch was recorded, so
// that the sender can leave them out at once: the size of a batch bounds them.
func fromBatch(e *ledger.BatchError) *Problem {
	code, rule := contract.CodeStateConflict, e.Err.Error()
	fix := "Leave it out: what was recorded stays"
	switch {
	case errors.Is(e.Err, ledger.ErrNotFound):
		code, rule, fix = contract.CodeNotFound, "does not exist, or this key may not see it",
			"Leave it out, or record the forecast first"
	case errors.Is(e.Err, ledger.ErrNotOver):
		fix = "Send it again when its window is over"
	}
	p := New(code, fmt.Sprintf("%d of the %s are not valid, so none was accepted: the first %s.", len(e.Items), e.Field,
		rule)).Fix(fix, "")
	for _, i := range e.Items {
		p.Errors = append(p.Errors, contract.FieldError{Pointer: jsonPointer(fmt.Sprintf("%s[%d]", e.Field, i)), Code: code,
			Message: rule})
	}
	return p
}

func fromTooMany(e *ledger.TooManyError) *Problem {
	p := New(contract.CodeRateLimited,
		e.Error()+".").Request("Send fewer forecasts, or continue when the next UTC day begins")
	p.RetryAfter = max(1, int(math.Ceil(e.After.Seconds())))
	return p
}

// fromRate says from when on somebody may submit jobs again.
func fromRate(e *ledger.SubmissionRateError) *Problem {
	p := New(contract.CodeRateLimited, strings.ToUpper(e.Error()[:1])+e.Error()[1:]+".").
		Request("Submit again at " + e.Opens.UTC().Format(time.RFC3339) + ", or many jobs at once as an array")
	p.RetryAfter = max(1, int(math.Ceil(e.Opens.Sub(e.Now).Seconds())))
	return p
}

// GetHeaders returns what a client needs to know before it reads the body.
func (p *Problem) GetHeaders() http.Header {
	if p.RetryAfter == 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.Itoa(p.RetryAfter)}}
}
