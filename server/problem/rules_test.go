package problem

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// ruled has each kind of rule that huma knows a tag for and this API may use.
type ruled struct {
	LeaseSeconds int64   `json:"lease_seconds,omitempty" maximum:"31536000"`
	WarmSeconds  int64   `json:"warm_seconds,omitempty" minimum:"60"`
	BySeconds    int64   `json:"by_seconds,omitempty" minimum:"1"`
	OddSeconds   int64   `json:"odd_seconds,omitempty" maximum:"90"`
	Memory       int64   `json:"gpu_memory_mib,omitempty" maximum:"16777216"`
	Days         int     `json:"days,omitempty" maximum:"366"`
	Hours        int     `json:"hours,omitempty" minimum:"1"`
	Share        float64 `json:"share,omitempty" exclusiveMaximum:"0.5"`
	More         float64 `json:"more,omitempty" exclusiveMinimum:"1000000000"`
	Even         int     `json:"even,omitempty" multipleOf:"2"`

	Name string `json:"name,omitempty" maxLength:"3" pattern:"^[a-z]*$" patternDescription:"lower-case letters"`

	Bare  string    `json:"bare,omitempty" pattern:"^[a-z]*$"`
	Long  string    `json:"long,omitempty" minLength:"3"`
	Text  string    `json:"text,omitempty" minLength:"1"`
	Items []int     `json:"items,omitempty" maxItems:"2" uniqueItems:"true"`
	Some  []int     `json:"some,omitempty" minItems:"2"`
	Any   []int     `json:"any,omitempty" minItems:"1"`
	Class string    `json:"class,omitempty" enum:"guaranteed,speculative"`
	Email string    `json:"email,omitempty" format:"email"`
	At    time.Time `json:"at,omitzero"`
	Raw   []byte    `json:"raw,omitempty"`
	On    bool      `json:"on,omitempty"`
	Part  struct{}  `json:"part,omitzero"`
}

// problemOf is what is said of a body that breaks one rule.
func problemOf(t *testing.T, of any, body string) *Problem {
	t.Helper()
	Install()
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schema := registry.Schema(reflect.TypeOf(of), false, "")
	var v any
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	result := &huma.ValidateResult{}
	huma.Validate(registry, schema, huma.NewPathBuffer([]byte("body"), 0), huma.ModeWriteToServer, v, result)
	require.NotEmpty(t, result.Errors, body)
	var p *Problem
	require.ErrorAs(t, huma.NewError(422, "wrong", result.Errors...), &p)
	require.Len(t, p.Errors, 1, body)
	return p
}

// Every rule is told in our words: with units that follow from the field's name,
// without exponents, and with its bound as a number beside the text.
func TestRulesInOurWords(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		code, message, fix string
		limit              float64
		unit               string
	}{
		`{"lease_seconds":31536001}`: {
			"maximum", "must be at most 31536000 s (365 days)", "Send a smaller lease_seconds", 31536000, "seconds"},
		`{"warm_seconds":1}`: {"minimum", "must be at least 60 s (1 minute)", "Send a larger warm_seconds", 60,
			"seconds"},
		`{"by_seconds":0}`:   {"minimum", "must be at least 1 s", "Send a larger by_seconds", 1, "seconds"},
		`{"odd_seconds":91}`: {"maximum", "must be at most 90 s", "Send a smaller odd_seconds", 90, "seconds"},
		`{"gpu_memory_mib":99999999}`: {"maximum", "must be at most 16777216 MiB", "Send a smaller gpu_memory_mib",
			16777216, "mib"},
		`{"days":367}`:  {"maximum", "must be at most 366 days", "Send a smaller days", 366, "days"},
		`{"hours":0}`:   {"minimum", "must be at least 1 hour", "Send a larger hours", 1, "hours"},
		`{"share":0.5}`: {"exclusive-maximum", "must be less than 0.5", "Send a smaller share", 0.5, ""},
		`{"more":1}`: {"exclusive-minimum", "must be more than 1000000000", "Send a larger more", 1e9,
			""},
		`{"even":3}`: {"multiple-of", "must be a multiple of 2", "Send another even", 2, ""},
		`{"name":"long"}`: {"max-length", "must be at most 3 characters long", "Send a shorter name", 3,
			"characters"},
		`{"name":"A"}`: {code: "pattern", message: "must be lower-case letters",
			fix: "Send such a name"},
		`{"bare":"A"}`: {code: "pattern", message: "must match the pattern ^[a-z]*$",
			fix: "Send such a bare"},
		`{"long":"a"}`: {"min-length", "must be at least 3 characters long", "Send a longer long", 3,
			"characters"},
		`{"text":""}`:       {"min-length", "must not be empty", "Send a longer text", 1, "characters"},
		`{"items":[1,2,3]}`: {"max-items", "must hold at most 2", "Send less in items", 2, "items"},
		`{"items":[1,1]}`: {code: "unique-items", message: "must not have duplicates",
			fix: "Send each value of items once"},
		`{"some":[1]}`: {"min-items", "must hold at least 2", "Send more in some", 2, "items"},
		`{"any":[]}`:   {"min-items", "must not be empty", "Send more in any", 1, "items"},
		`{"class":"sure"}`: {code: "enum", message: "must be one of guaranteed, speculative",
			fix: "Send one of these as class"},
		`{"email":"nobody"}`: {code: "format", message: "must be an e-mail address, such as ada@example.com",
			fix: "Send such an address as email"},
		`{"at":"tomorrow"}`: {code: "format", message: anInstant, fix: "Send such a time as at"},
		`{"raw":"?"}`:       {code: "format", message: "must be base64", fix: "Encode raw"},
		`{"on":"yes"}`: {code: "type", message: "must be true or false",
			fix: "Send true or false as on"},
		`{"days":"one"}`: {code: "type", message: "must be a whole number",
			fix: "Send a whole number as days"},
		`{"days":1.5}`: {code: "type", message: "must be a whole number",
			fix: "Send a whole number as days"},
		`{"share":"half"}`: {code: "type", message: "must be a number", fix: "Send a number as share"},
		`{"text":1}`:       {code: "type", message: "must be text", fix: "Send text as text"},
		`{"items":1}`:      {code: "type", message: "must be a list", fix: "Send a list as items"},
		`{"part":1}`:       {code: "type", message: "must be an object", fix: "Send an object as part"},
		`{"items":[1,"x"]}`: {code: "type", message: "must be a whole number",
			fix: "Send a whole number as items[1]"},
		`[]`: {code: "type", message: "must be an object", fix: "Send an object as the body"},
	} {
		p := problemOf(t, ruled{}, body)
		e := p.Errors[0]
		require.Equal(t, want.code, e.Code, body)
		require.Equal(t, want.message, e.Message, body)
		require.Equal(t, want.unit, e.Unit, body)
		require.Equal(t, []contract.Fix{{Label: want.fix, Request: true}}, p.Fixes, body)
		require.Equal(t, want.limit != 0, e.Limit != nil, body)
		if e.Limit != nil {
			require.InDelta(t, want.limit, *e.Limit, 0, body)
		}
	}
	require.Equal(t, []string{"guaranteed", "speculative"}, problemOf(t, ruled{}, `{"class":"sure"}`).Errors[0].Allowed)
	missing := problemOf(t, struct {
		GPUs int `json:"gpus"`
	}{}, `{}`)
	require.Equal(t, "gpus is missing", missing.Detail)
	require.Equal(t, "Add gpus", missing.Fixes[0].Label)
}

// What no rule fits is told as it came: nothing better can be advised.
func TestUnknownRulesAreTold(t *testing.T) {
	t.Parallel()
	var p *Problem
	Install()
	require.ErrorAs(t, huma.NewError(422, "wrong", &huma.ErrorDetail{Location: "body.x", Message: "is odd"}), &p)
	require.Equal(t, "x is odd", p.Detail)
	require.Empty(t, p.Fixes)
}
