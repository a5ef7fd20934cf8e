package ledger

// CodeProviderFailing is the blocker of a node whose provider fails, and
// ProviderRefuses what tenants are told of it: what providers say is operators'.
const (
	CodeProviderFailing = "provider_failing"
	ProviderRefuses     = "its provider refuses: ask an operator"
)
