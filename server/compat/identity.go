package compat

import (
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// identityRoutes are those of GPUScheduler for its organizations, people and keys.
func identityRoutes() []Route {
	return []Route{
		{http.MethodPost, below + "/organizations", auth.Operator, createOldOrganization},
		{http.MethodPost, below + "/users", auth.Admin, createOldUser},
		{http.MethodGet, below + "/users", auth.Admin, listOldUsers},
		{http.MethodPut, below + "/users/:id", auth.Admin, changeOldUser},
		{http.MethodPost, below + "/api-keys", auth.Admin, createOldKey},
		{http.MethodGet, below + "/api-keys", auth.Admin, listOldKeys},
	}
}

type oldOrganization struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	MaxActiveGPUs int       `json:"max_active_gpus"`
	CreatedAt     time.Time `json:"created_at"`
}

// usualGPUs is what an organization might have that named no bound.
const usualGPUs = 5

func createOldOrganization(c *Call) (int, any, error) {
	in := struct {
		Name          string `json:"name"`
		MaxActiveGPUs int    `json:"max_active_gpus"`
	}{MaxActiveGPUs: usualGPUs}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if err := checkNumbers(bounded{"max_active_gpus", float64(in.MaxActiveGPUs), 1, 1_000_000}); err != nil {
		return 0, nil, err
	}
	var made contract.Organization
	err := c.post("/v1/organizations", contract.OrganizationCreate{Name: in.Name, Limits: contract.Limits{
		MaxGPUs: in.MaxActiveGPUs, SpeculationPerDay: contract.Money{Amount: "0", Currency: "USD"}}}, &made)
	return http.StatusCreated, oldOrganization{ID: made.ID, Name: made.Name, MaxActiveGPUs: made.Limits.MaxGPUs,
		CreatedAt: made.CreatedAt}, err
}

type oldUser struct {
	ID             string `json:"id"`
	OrganizationID string `json:"organization_id"`
	Email          string `json:"email"`
	Role           string `json:"role"`
	IsActive       bool   `json:"is_active"`
}

func encodeOldUser(u contract.User) oldUser {
	return oldUser{ID: u.ID, OrganizationID: u.OrganizationID, Email: u.Email, Role: u.Role, IsActive: u.Active}
}

// createOldUser adds a member: a role is given by the change of a user, which only admins may.
func createOldUser(c *Call) (int, any, error) {
	var in struct {
		Email string `json:"email"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	var made contract.User
	err := c.post("/v1/users", contract.UserCreate{Email: in.Email, Role: "member"}, &made)
	return http.StatusCreated, encodeOldUser(made), err
}

// page reads where a list begins, and how much of it is wanted.
func (c *Call) page() (skip, limit int, err error) {
	if skip, err = c.number("skip", 0, 0, most); err == nil {
		limit, err = c.number("limit", 100, 1, most)
	}
	return skip, limit, err
}

func listOldUsers(c *Call) (int, any, error) {
	skip, limit, err := c.page()
	if err != nil {
		return 0, nil, err
	}
	all, _, err := list[contract.User](c, "/v1/users", nil, skip, limit, nil)
	out := make([]oldUser, 0, len(all))
	for _, u := range all {
		out = append(out, encodeOldUser(u))
	}
	return http.StatusOK, out, err
}

func changeOldUser(c *Call) (int, any, error) {
	var in struct {
		Role     *string `json:"role"`
		IsActive *bool   `json:"is_active"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if in.Role == nil && in.IsActive == nil {
		return 0, nil, problem.Invalid("role", "must be given, or is_active", "")
	}
	var now contract.User
	header, err := c.API.Ask(c.Context, inward.Request{Method: http.MethodGet, Path: c.path("/v1/users")}, &now)
	if err != nil {
		return 0, nil, err
	}
	err = c.ask(inward.Request{Method: http.MethodPatch, Path: c.path("/v1/users"), IfMatch: header.Get("ETag"),
		Body: contract.UserPatch{Role: in.Role, Active: in.IsActive}}, &now)
	return http.StatusOK, encodeOldUser(now), err
}

type oldKey struct {
	ID             string    `json:"id"`
	KeyPrefix      string    `json:"key_prefix"`
	UserID         string    `json:"user_id,omitempty"`
	OrganizationID string    `json:"organization_id"`
	ExpiresAt      time.Time `json:"expires_at,omitzero"`
	LastUsedAt     time.Time `json:"last_used_at,omitzero"`
	APIKey         string    `json:"api_key,omitempty"` // only in the answer that makes it
}

func encodeOldKey(k contract.Key) oldKey {
	return oldKey{ID: k.ID, KeyPrefix: k.ID, UserID: k.UserID, OrganizationID: k.OrganizationID, ExpiresAt: k.ExpiresAt,
		LastUsedAt: k.LastUsedAt}
}

// createOldKey makes a member's key: whoever wants another role asks the API. A null life has no
// end, and one that is left out is 30 days.
func createOldKey(c *Call) (int, any, error) {
	days := 30
	in := struct {
		Name          string `json:"name"`
		ExpiresInDays *int   `json:"expires_in_days"`
	}{Name: "api key", ExpiresInDays: &days}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	asked := contract.KeyCreate{Name: in.Name, Kind: "person", Role: "member", NeverExpires: in.ExpiresInDays == nil}
	if in.ExpiresInDays != nil {
		if err := checkNumbers(bounded{"expires_in_days", float64(*in.ExpiresInDays), 1, 3650}); err != nil {
			return 0, nil, err
		}
		asked.ExpiresInSeconds = int64(*in.ExpiresInDays) * 24 * 3600
	}
	var made contract.KeyCreated
	err := c.post("/v1/keys", asked, &made)
	out := encodeOldKey(made.Key)
	out.APIKey = made.Secret
	return http.StatusCreated, out, err
}

func listOldKeys(c *Call) (int, any, error) {
	skip, limit, err := c.page()
	if err != nil {
		return 0, nil, err
	}
	all, _, err := list[contract.Key](c, "/v1/keys", nil, skip, limit, nil)
	out := make([]oldKey, 0, len(all))
	for _, k := range all {
		out = append(out, encodeOldKey(k))
	}
	return http.StatusOK, out, err
}
