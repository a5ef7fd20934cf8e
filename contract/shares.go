package contract

// Share is an organization's fair share of a pool.
type Share struct {
	OrganizationID   string  `json:"organization_id"`
	OrganizationName string  `json:"organization_name,omitempty"`
	Weight           int     `json:"weight"`
	Share            float64 `json:"share" doc:"Weighted dominant share of decayed use; the smallest is served first."`
	GPUHours         float64 `json:"gpu_hours" doc:"In use, decayed."`
	IdleGPUHours     float64 `json:"idle_gpu_hours" doc:"Kept warm for speculative reservations, as charged, decayed."`
	IdleFactor       float64 `json:"idle_factor"`

	Users []UserShare `json:"users,omitempty" nullable:"false" doc:"What each of its users has had, the largest first."`
}

// UserShare is what a user has had of what their organization has.
type UserShare struct {
	UserID    string  `json:"user_id,omitempty" doc:"Left out: keys that belong to nobody."`
	UserEmail string  `json:"user_email,omitempty"`
	Share     float64 `json:"share" doc:"Measured as the organization's, of which it is a part."`
	GPUHours  float64 `json:"gpu_hours" doc:"In use, decayed."`
}

// Shares are the fair shares of a pool that the caller may see: its own, or to
// operators all, the largest first.
type Shares struct {
	PoolID   string  `json:"pool_id"`
	PoolName string  `json:"pool_name,omitempty"`
	Items    []Share `json:"items" nullable:"false"`
}

// sharesTags are the rests of tags that are too long for their lines.
var sharesTags = tags{
	"Share.IdleFactor": `doc:"The factor by which idle time of its speculative reservations counts, by how they ` +
		`came true."`,
}
