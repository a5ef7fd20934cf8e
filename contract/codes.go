package contract

// The problem codes.
const (
	CodeMalformedJSON         = "malformed-json"
	CodeInvalidParameter      = "invalid-parameter"
	CodeInvalidCursor         = "invalid-cursor"
	CodeMissingIdempotencyKey = "missing-idempotency-key"
	CodeUnauthenticated       = "unauthenticated"
	CodePermissionDenied      = "permission-denied"
	CodeQuotaExceeded         = "quota-exceeded"
	CodeBudgetExceeded        = "budget-exceeded"
	CodeSpendingExceeded      = "spending-exceeded"
	CodeKeyCapExceeded        = "key-cap-exceeded"
	CodeUserCapExceeded       = "user-cap-exceeded"
	CodeLeadTimeTooShort      = "lead-time-too-short"
	CodePrewarmPaused         = "prewarm-paused"
	CodeClaimTooEarly         = "claim-too-early"
	CodeClaimTooLong          = "claim-too-long"
	CodeNotFound              = "not-found"
	CodeMethodNotAllowed      = "method-not-allowed"
	CodeNameTaken             = "name-taken"
	CodeAmbiguousName         = "ambiguous-name"
	CodeCapacityExhausted     = "capacity-exhausted"
	CodeStateConflict         = "state-conflict"
	CodeQueueFull             = "queue-full"
	CodeObservedPool          = "observed-pool"
	CodeDaemonRefused         = "daemon-refused"
	CodeNodeNotAttached       = "node-not-attached"
	CodePromisesAtRisk        = "promises-at-risk"
	CodeInUse                 = "in-use"
	CodeETagMismatch          = "etag-mismatch"
	CodePlanStale             = "plan-stale"
	CodePlanExpired           = "plan-expired"
	CodeBodyTooSlow           = "body-too-slow"
	CodeBodyTooLarge          = "body-too-large"
	CodeUnsupportedMediaType  = "unsupported-media-type"
	CodeHostNotAllowed        = "host-not-allowed"
	CodeValidationFailed      = "validation-failed"
	CodeNoMatchingHardware    = "no-matching-hardware"
	CodeUnsupportedRRule      = "unsupported-rrule"
	CodeUnknownTimeZone       = "unknown-time-zone"
	CodeWindowInPast          = "window-in-past"
	CodeWindowTooLong         = "window-too-long"
	CodeIdempotencyKeyReused  = "idempotency-key-reused"
	CodeIdempotencyKeyExpired = "idempotency-key-expired"
	CodePreconditionRequired  = "precondition-required"
	CodeRateLimited           = "rate-limited"
	CodeInternal              = "internal"
	CodeUnavailable           = "store-unavailable"
	CodePoolBusy              = "pool-busy"
	CodeStorageFull           = "storage-full"
	CodeRecovering            = "recovering"
	CodeTimeout               = "timeout"
)

// ProblemType is one row of the catalogue.
type ProblemType struct {
	Code      string
	Status    int
	Title     string
	Retryable bool
}

// Catalogue lists every problem this API can answer with. Quota and caps are
// 403 and not 429, so that no client's back-off hammers them.
var Catalogue = []ProblemType{
	{CodeMalformedJSON, 400, "The body is not valid JSON", false},
	{CodeInvalidParameter, 400, "A parameter or header is wrong", false},
	{CodeInvalidCursor, 400, "The cursor is not valid", false},
	{CodeMissingIdempotencyKey, 400, "This request needs an Idempotency-Key", false},
	{CodeUnauthenticated, 401, "No valid API key", false},
	{CodePermissionDenied, 403, "This key may not do that", false},
	{CodeQuotaExceeded, 403, "The organization's quota does not allow it", false},
	{CodeBudgetExceeded, 403, "The speculation budget does not allow it", false},
	{CodeSpendingExceeded, 403, "The organization's money budget does not allow it", false},
	{CodeKeyCapExceeded, 403, "The key's caps do not allow it", false},
	{CodeUserCapExceeded, 403, "The person's caps do not allow it", false},
	{CodeLeadTimeTooShort, 422, "The window ends before a node can be ready", false},
	{CodePrewarmPaused, 403, "Pre-warming is paused", false},
	{CodeNotFound, 404, "Not found", false},
	{CodeMethodNotAllowed, 405, "This method does not exist here", false},
	{CodeBodyTooSlow, 408, "The body arrived too slowly", true},
	{CodeNameTaken, 409, "The name is taken", false},
	{CodeAmbiguousName, 409, "Several things have this name", false},
	{CodeCapacityExhausted, 409, "There is no capacity in that window", true},
	{CodeClaimTooEarly, 409, "It is too early to claim this reservation", true},
	{CodeClaimTooLong, 422, "The lease is longer than the reservation", false},
	{CodeStateConflict, 409, "Its state does not allow that", false},
	{CodeQueueFull, 409, "As many jobs wait as may", true},
	{CodeObservedPool, 409, "The cluster's own scheduler places the work in this pool", false},
	{CodeDaemonRefused, 409, "The node's daemon must join anew", false},
	{CodeNodeNotAttached, 409, "The node's daemon is not in reach", true},
	{CodePlanExpired, 410, "The plan is too old", false},
	{CodePlanStale, 412, "The plan would no longer do what it showed", false},
	{CodeInUse, 409, "It is still in use", false},
	{CodePromisesAtRisk, 409, "Promises would be broken", false},
	{CodeETagMismatch, 412, "It changed since it was read", false},
	{CodeBodyTooLarge, 413, "The body is too large", false},
	{CodeUnsupportedMediaType, 415, "The body must be application/json", false},
	{CodeHostNotAllowed, 421, "This host name is not served here", false},
	{CodeValidationFailed, 422, "A value in the request is wrong", false},
	{CodeNoMatchingHardware, 422, "No pool could ever hold this", false},
	{CodeUnsupportedRRule, 422, "The recurrence rule is not supported", false},
	{CodeUnknownTimeZone, 422, "The time zone is unknown", false},
	{CodeWindowInPast, 422, "The window starts in the past", false},
	{CodeWindowTooLong, 422, "The window or lease is too long", false},
	{CodeIdempotencyKeyReused, 422, "The Idempotency-Key was used for another request", false},
	{CodeIdempotencyKeyExpired, 422, "The Idempotency-Key is too old", false},
	{CodePreconditionRequired, 428, "This request needs If-Match", false},
	{CodeRateLimited, 429, "Too many requests", true},
	{CodeInternal, 500, "Something went wrong on our side", true},
	{CodeUnavailable, 503, "The store does not answer", true},
	{CodePoolBusy, 503, "Somebody else is changing the same thing", true},
	{CodeStorageFull, 507, "The database has no space left", true},
	{CodeRecovering, 409, "The pool only reconciles", true},
	{CodeTimeout, 504, "The request took too long", true},
}

// NewProblem returns the problem of a code with what the catalogue says of it.
// An unknown code becomes CodeInternal.
func NewProblem(code, detail string) Problem {
	for _, t := range Catalogue {
		if t.Code == code {
			return Problem{Type: ProblemBase + code, Title: t.Title, Status: t.Status, Code: code,
				Retryable: t.Retryable, Detail: detail}
		}
	}
	return NewProblem(CodeInternal, detail)
}
