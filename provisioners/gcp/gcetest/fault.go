package gcetest

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// Call names one method of the API.
type Call string

// The calls that faults can hit.
const (
	Insert          Call = "instances.insert"
	Get             Call = "instances.get"
	Delete          Call = "instances.delete"
	List            Call = "instances.list"
	AggregatedList  Call = "instances.aggregatedList"
	SetMetadata     Call = "instances.setMetadata"
	GuestAttributes Call = "instances.getGuestAttributes"
	Operations      Call = "zoneOperations.list"
	Wait            Call = "zoneOperations.wait"
	Zones           Call = "zones.list"
)

// Effect is what a fault does to a call.
type Effect string

// The effects.
const (
	Refuse  Effect = "refuse"  // nothing is done; the answer is Status and Reason
	Break   Effect = "break"   // what was asked is done, and the connection ends without an answer
	Fail    Effect = "fail"    // Insert: accepted, and its operation ends with the code Reason
	Ignore  Effect = "ignore"  // Delete: the answer is an operation, and the instance lives on
	Partial Effect = "partial" // AggregatedList: a zone that has instances cannot be reached
	Race    Effect = "race"    // SetMetadata: somebody else changed the metadata a moment before
)

// Fault hits the next call of its kind, once.
type Fault struct {
	Call       Call
	Effect     Effect
	Status     int
	Reason     string
	Message    string
	RetryAfter time.Duration
	// QuotaMetric is the quota that an operation's error speaks of.
	QuotaMetric string
}

// Inject queues faults: the first of a call is used up first.
func (c *Cloud) Inject(faults ...Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, faults...)
}

// Throttle refuses the next calls, whatever they are, for being too many; 0
// takes back what is left.
func (c *Cloud) Throttle(calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusals = calls
}

// SetListLag makes lists of instances show the world as it was that long ago.
func (c *Cloud) SetListLag(lag time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listLag = lag
}

// SetStock bounds how many more instances of the machine type can be had.
func (c *Cloud) SetStock(machineType string, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock[machineType] = left
}

// nextFault uses up a fault of the call.
func (c *Cloud) nextFault(call Call) (Fault, error) {
	if c.refusals > 0 {
		c.refusals--
		return Fault{}, &apiError{
			status: http.StatusTooManyRequests, reason: "rateLimitExceeded", retryAfter: "7",
			message: "Quota exceeded for quota group 'ReadGroup' and limit 'Read requests per minute'.",
		}
	}
	for i, fault := range c.faults {
		if fault.Call != call {
			continue
		}
		c.faults = append(c.faults[:i:i], c.faults[i+1:]...)
		if fault.Effect == Refuse {
			return fault, fault.refusalError()
		}
		return fault, nil
	}
	return Fault{}, nil
}

func (f Fault) refusalError() error {
	refused := &apiError{status: f.Status, reason: f.Reason, message: f.Message}
	if refused.message == "" {
		refused.message = "injected failure: " + f.Reason
	}
	if f.RetryAfter > 0 {
		refused.retryAfter = strconv.Itoa(int(f.RetryAfter / time.Second))
	}
	return refused
}

type faultKey struct{}

func withFault(ctx context.Context, fault Fault) context.Context {
	return context.WithValue(ctx, faultKey{}, fault)
}

// faultOf returns the fault that a handler has to act on.
func faultOf(r *http.Request) Fault {
	fault, _ := r.Context().Value(faultKey{}).(Fault)
	return fault
}
