package cli

// aliases are the commands of a noun, which are found under both of its numbers.
var aliases = map[string][]string{"allocations": {"allocation"}, "reservations": {"reservation"},
	"schedules": {"schedule"}, "jobs": {"job"},
	"pools": {"pool"}, "shares": {"share"}, "nodes": {"node"}, "gpus": {"gpu"}, "events": {"event"},
	"decisions": {"decision"},
	"forecasts": {"forecast"}, "costs": {"cost"}, "contexts": {"context"}, "plan": {"plans"}, "key": {"keys"},
	"quota": {"quotas"},
	"orgs":  {"org", "organization", "organizations"}, "users": {"user"}, "report": {"reports"}}
