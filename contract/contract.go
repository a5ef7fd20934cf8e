// Package contract is the vocabulary that clients and the server share: the
// JSON bodies of the API under /v1, its problem codes and its enums.
//
// It depends on nothing but the standard library and knows no transport. Times
// are RFC 3339 in UTC, intervals are half-open, durations are whole numbers
// with their unit in the name, and money is a decimal string with a currency.
// Readers must ignore fields they do not know; the server refuses them in
// requests and names the closest one it knows.
//
// The struct tags besides json describe a value's rule once: the server checks
// requests by them and openapi.yaml is generated from them.
package contract

//go:generate go test ../server -run TestOpenAPI -update

// Version is the version of the contract, as openapi.yaml states it.
const Version = "1.0.0"

// List is one page of a collection. NextCursor is empty on the last page.
type List[T any] struct {
	Items      []T    `json:"items" nullable:"false"`
	NextCursor string `json:"next_cursor,omitempty" doc:"Send it as cursor to get the next page. Opaque."`
}

// Currency is the only currency so far.
const Currency = "USD"

// Money is an exact amount.
type Money struct {
	Amount   string `json:"amount" pattern:"^(0|[1-9][0-9]{0,8})(\\.[0-9]{1,6})?$" maxLength:"16" example:"4.20"`
	Currency string `json:"currency" enum:"USD"`
}

// Headers of the API that are not standard ones.
const (
	HeaderIdempotencyKey      = "Idempotency-Key"
	HeaderIdempotencyReplayed = "Idempotency-Replayed"
	HeaderRequestID           = "Request-Id"
)

// Build says which program answers.
type Build struct {
	Version    string `json:"version"`
	Contract   string `json:"contract"`
	GoVersion  string `json:"go_version"`
	Simulation bool   `json:"simulation" doc:"True when any pool's machines are simulated."`
	// SimulatedPools are the names of those pools.
	SimulatedPools []string `json:"simulated_pools,omitempty"`
}

// contractTags are the rests of tags that are too long for their lines.
var contractTags = tags{
	"Money.Amount": `patternDescription:"a decimal number with at most 9 digits before and 6 after the point, not ` +
		`negative"`,
	"Build.SimulatedPools": `doc:"The names of the pools whose machines are simulated."`,
}
