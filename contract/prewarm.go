package contract

import "time"

// PrewarmPause says that an organization, or everybody, pre-warms nothing for
// speculative reservations.
type PrewarmPause struct {
	OrganizationID   string    `json:"organization_id,omitempty"`
	OrganizationName string    `json:"organization_name,omitempty"`
	Installation     bool      `json:"installation" doc:"Everybody is paused."`
	Reason           string    `json:"reason,omitempty"`
	PausedBy         string    `json:"paused_by,omitempty"`
	PausedByName     string    `json:"paused_by_name,omitempty"`
	PausedAt         time.Time `json:"paused_at"`
	Until            time.Time `json:"until,omitzero"`
}

// Prewarm says whether speculative reservations are warmed.
type Prewarm struct {
	Paused bool           `json:"paused"`
	Pauses []PrewarmPause `json:"pauses" nullable:"false"`
}

// PrewarmPauseCreate pauses pre-warming for speculative reservations. Promises are kept.
type PrewarmPauseCreate struct {
	OrganizationID string    `json:"organization_id,omitempty" maxLength:"64"`
	Installation   bool      `json:"installation,omitempty" doc:"Pause everybody (operators)."`
	Reason         string    `json:"reason,omitempty" maxLength:"200"`
	Until          time.Time `json:"until,omitzero"`
}

// PrewarmResume ends a pause.
type PrewarmResume struct {
	OrganizationID string `json:"organization_id,omitempty" maxLength:"64"`
	Installation   bool   `json:"installation,omitempty"`
}

// prewarmTags are the rests of tags that are too long for their lines.
var prewarmTags = tags{
	"PrewarmPause.PausedBy":    `doc:"Id of the key; shown to the organization itself and to operators."`,
	"PrewarmPause.Until":       `doc:"When it resumes by itself; absent: only when somebody resumes it."`,
	"PrewarmPauseCreate.Until": `doc:"When to resume by itself; left out: only when somebody resumes it."`,
	"Prewarm.Paused": `doc:"Speculative reservations of the caller's organization are refused ` +
		`and not warmed."`,
	"Prewarm.Pauses":                    `doc:"The organization's own and the installation's; to operators, all."`,
	"PrewarmPauseCreate.OrganizationID": `doc:"Id or name. Your own, when left out; operators may name any."`,
	"PrewarmResume.OrganizationID":      `doc:"Id or name. Your own, when left out; operators may name any."`,
	"PrewarmResume.Installation": `doc:"Resume everybody (operators); organizations stay as they paused ` +
		`themselves."`,
}
