package contract

import "time"

// Organization is a tenant.
type Organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Limits    Limits    `json:"limits"`
	CreatedAt time.Time `json:"created_at"`
	Version   int       `json:"version"`
}

// OrganizationCreate asks for a new tenant.
type OrganizationCreate struct {
	Name   string `json:"name" minLength:"1" maxLength:"63" pattern:"^[a-z0-9][a-z0-9-]*$"`
	Limits Limits `json:"limits"`
}

// User is a person of an organization.
type User struct {
	ID               string    `json:"id"`
	OrganizationID   string    `json:"organization_id"`
	OrganizationName string    `json:"organization_name,omitempty"`
	Email            string    `json:"email"`
	Role             string    `json:"role" enum:"viewer,member,admin,operator"`
	Active           bool      `json:"active"`
	Caps             *Caps     `json:"caps,omitempty" doc:"Caps on everything that this person's keys book; absent: none."`
	CreatedAt        time.Time `json:"created_at"`
	Version          int       `json:"version"`
}

// UserCreate asks for a new user. Only an operator may name an organization
// other than its own.
type UserCreate struct {
	OrganizationID string `json:"organization_id,omitempty" maxLength:"64" doc:"Id or name."`
	Email          string `json:"email" format:"email" maxLength:"254"`
	Role           string `json:"role" enum:"viewer,member,admin"`
}

// UserPatch changes what is not nil.
type UserPatch struct {
	Role   *string `json:"role,omitempty" enum:"viewer,member,admin" nullable:"false"`
	Active *bool   `json:"active,omitempty" nullable:"false"`
}

// UserCaps sets what a person's keys may book, all together.
type UserCaps struct {
	Caps *Caps `json:"caps,omitempty" doc:"Left out: no caps."`
}

// Caps are what a key, or all keys of one person, may commit. An agent's key
// always has them: it commits without a person. The server enforces them.
type Caps struct {
	MaxGPUs          int    `json:"max_gpus" minimum:"1" maximum:"1000000"`
	MaxPerDay        Money  `json:"max_per_day"`
	MaxLeadSeconds   int64  `json:"max_lead_seconds" minimum:"1" maximum:"31536000"`
	MaxWindowSeconds int64  `json:"max_window_seconds" minimum:"1" maximum:"31536000"`
	GPUHoursPerDay   *int64 `json:"gpu_hours_per_day,omitempty" minimum:"0" maximum:"1000000000" nullable:"false"`
}

// Key is an API key without its secret.
type Key struct {
	ID               string    `json:"id" doc:"Also the part of the key that may be logged."`
	OrganizationID   string    `json:"organization_id,omitempty"`
	OrganizationName string    `json:"organization_name,omitempty"`
	UserID           string    `json:"user_id,omitempty"`
	UserEmail        string    `json:"user_email,omitempty"`
	Name             string    `json:"name"`
	Kind             string    `json:"kind" enum:"person,agent"`
	Role             string    `json:"role" enum:"viewer,member,admin,operator"`
	Caps             *Caps     `json:"caps,omitempty" doc:"An agent's key always has them."`
	Last4            string    `json:"last4"`
	CreatedBy        string    `json:"created_by,omitempty"`
	ParentID         string    `json:"parent_id,omitempty"`
	CreatedByName    string    `json:"created_by_name,omitempty"`
	CreatedAt        time.Time `json:"created_at"`
	ExpiresAt        time.Time `json:"expires_at,omitzero"`
	RevokedAt        time.Time `json:"revoked_at,omitzero"`
	LastUsedAt       time.Time `json:"last_used_at,omitzero"`
	Works            bool      `json:"works"`
	EndedWith        string    `json:"ended_with,omitempty"`

	Ended     []KeyEnded    `json:"ended,omitempty"`
	Schedules []KeySchedule `json:"schedules,omitempty"`
}

// KeyEnded is a key that ended with the one it rested on.
type KeyEnded struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// KeySchedule is a schedule that goes on without the key that made it.
type KeySchedule struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	MadeBy     string `json:"made_by"`
	MadeByName string `json:"made_by_name,omitempty" doc:"Of that key."`
}

// KeyCreate asks for a new key, which can do no more than the one that asks, ends
// with it at the latest, and shares its caps.
type KeyCreate struct {
	OrganizationID   string `json:"organization_id,omitempty" maxLength:"64"`
	UserID           string `json:"user_id,omitempty" maxLength:"254" doc:"Id or e-mail address."`
	Name             string `json:"name" minLength:"1" maxLength:"63"`
	Kind             string `json:"kind" enum:"person,agent"`
	Role             string `json:"role" enum:"viewer,member,admin,operator" doc:"An agent's key is always a member."`
	Caps             *Caps  `json:"caps,omitempty"`
	ExpiresInSeconds int64  `json:"expires_in_seconds,omitempty" minimum:"60" maximum:"315360000"`
	NeverExpires     bool   `json:"never_expires,omitempty"`
}

// KeyCreated is the one answer that shows a secret.
type KeyCreated struct {
	Key    Key    `json:"key"`
	Secret string `json:"secret" doc:"The whole API key. It is shown once and stored nowhere."`
}

// Whoami says who asks.
type Whoami struct {
	KeyID            string `json:"key_id"`
	KeyName          string `json:"key_name"`
	Kind             string `json:"kind" enum:"person,agent"`
	OrganizationID   string `json:"organization_id,omitempty"`
	OrganizationName string `json:"organization_name,omitempty"`
	UserID           string `json:"user_id,omitempty"`
	UserEmail        string `json:"user_email,omitempty"`
	Role             string `json:"role" enum:"viewer,member,admin,operator"`
	// The caps that hold, and what is used of each: of this key, and of all keys of
	// its person together. A booking must be within both.
	Caps     *Caps    `json:"caps,omitempty" doc:"Caps of this key; absent: none."`
	Used     *CapsUse `json:"used,omitempty" doc:"Of caps, by this key."`
	UserCaps *Caps    `json:"user_caps,omitempty" doc:"Caps of the person, for all their keys together; absent: none."`
	UserUsed *CapsUse `json:"user_used,omitempty" doc:"Of user_caps, by all keys of the person."`
}

// CapsUse is what is used of caps.
type CapsUse struct {
	GPUs     int     `json:"gpus" doc:"Held and promised now."`
	Peak     int     `json:"peak"`
	Spent    Money   `json:"spent" doc:"Cost of bookings that start in this UTC day."`
	GPUHours float64 `json:"gpu_hours" doc:"Of bookings that start in this UTC day."`
}

// identityTags are the rests of tags that are too long for their lines.
var identityTags = tags{
	"OrganizationCreate.Name": `patternDescription:"lower-case letters, digits and hyphens, a letter or digit first"`,
	"Caps.MaxGPUs":            `doc:"GPUs held and promised at any one instant."`,
	"Caps.MaxPerDay":          `doc:"Cost of bookings that start in one UTC day, including their extensions."`,
	"Caps.MaxLeadSeconds":     `doc:"How far ahead a reservation may start."`,
	"Caps.MaxWindowSeconds":   `doc:"The longest single booking, including its extensions."`,
	"Caps.GPUHoursPerDay":     `doc:"For bookings that start in one UTC day; absent: no limit."`,
	"Key.ParentID": `doc:"The key that made it, whose caps, role and expiry also apply to it; absent for an ` +
		`independent key."`,
	"Key.Works": `doc:"Whether it opens anything: neither it, nor its user, nor a key that it depends on has ended."`,
	"Key.EndedWith": `doc:"The key or the user with which it stopped to work, where it has not been revoked and has ` +
		`not expired itself."`,
	"Key.Ended": `doc:"In the answer to a revocation: working keys that depended on it and ended with it."`,
	"Key.Schedules": `doc:"In the answer to a revocation: schedules made by it or by a key that ended with it. ` +
		`They belong to the organization and continue: pause or delete those that should not."`,
	"KeyCreate.OrganizationID": `doc:"Id or name; only an operator may name another than its own."`,
	"KeyCreate.Caps": `doc:"Required for an agent's key. Left out of a person's, those of the key that asks, or ` +
		`none."`,
	"KeyCreate.ExpiresInSeconds": `doc:"Default: for a person's key what the installation set, 90 days unless ` +
		`changed; for an agent's key the end of the requesting key."`,
	"KeyCreate.NeverExpires": `doc:"It works until somebody revokes it or the key that asks. Refused where that one ` +
		`expires."`,
	"CapsUse.Peak": `doc:"The most GPUs held and promised at one instant, as far ahead as the caps allow."`,
}
