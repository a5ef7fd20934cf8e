package api

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// inputOf is the table of an operation with an input of the type, and its schema.
func inputOf[I any](t *testing.T, id string) (*plainInput, *huma.Schema, huma.Registry) {
	t.Helper()
	release()
	_, doc, _ := Register(gin.New(), Config{Ledger: &verbs.Ledger{}, Clock: clock.System{}})
	registry := doc.Components.Schemas
	for _, op := range operationsIn(doc) {
		if op.OperationID == id {
			return newPlainInput(registry, op, reflect.TypeFor[I]()),
				op.RequestBody.Content["application/json"].Schema, registry
		}
	}
	require.Fail(t, "no such operation", id)
	return nil, nil, nil
}

const usualBooking = `{"pool":"lab","gpus":1,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00.5+01:00",` +
	` "class" : "speculative", "queue":true,"name":"job 7"}`

func TestUsualBookingsArePlain(t *testing.T) {
	t.Parallel()
	table, _, _ := inputOf[book[contract.ReservationCreate]](t, "createReservation")
	require.NotNil(t, table)
	require.NotNil(t, newPlainOutput(&huma.Operation{}, reflect.TypeFor[Created[contract.Reservation]]()))
	var got contract.ReservationCreate
	require.True(t, table.readBody([]byte(usualBooking), reflect.ValueOf(&got).Elem()))
	require.Equal(t, "job 7", got.Name)
	require.True(t, got.End.Equal(time.Date(2026, 3, 2, 10, 0, 0, 5e8, time.UTC)))
}

// values of members, most of which some field takes.
var values = []string{`"lab"`, `""`, `"online"`, `"batch"`, `"guaranteed"`, `"even"`, `"nothing of the list"`, `"é"`,
	`"\u0061"`, `"` + strings.Repeat("x", 63) + `"`, `"` + strings.Repeat("x", 64) + `"`, "1", "0", "-1", "-0", "1.0",
	"1e2", "100000", "100001", "1024", "999999999999999", "9999999999999999", "true", "false", "null", "[]", "[1]", "{}",
	`{"a":1}`, `"2026-03-02T10:00:00Z"`, `"2026-03-02T10:00:00.123456789+05:30"`, `"2026-03-02T24:00:00Z"`,
	`"2026-03-02T1:00:00Z"`, `"2026-03-02T10:00:00,5Z"`, `"2026-03-02t10:00:00z"`, `"2026-02-30T10:00:00Z"`,
	`"2026-03-02T10:00:00+24:00"`, `"2026-03-02"`, `"0000-01-01T00:00:00Z"`, `"10000-01-01T00:00:00Z"`}

// TestPlainBodiesAreReadAsByHuma: what is taken as plain breaks no rule of the schema,
// and is the same as what huma makes of it.
func TestPlainBodiesAreReadAsByHuma(t *testing.T) {
	t.Parallel()
	table, schema, registry := inputOf[book[contract.ReservationCreate]](t, "createReservation")
	names := append(resolveSchema(registry, schema).Required, "Pool", "nothing", "")
	for name := range resolveSchema(registry, schema).Properties {
		names = append(names, name)
	}
	var taken int
	rapid.Check(t, func(t *rapid.T) {
		var members []string
		blank := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "blank")
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 6, rapid.ID).Draw(t, "names") {
			members = append(members, `"`+name+`"`+blank+":"+blank+rapid.SampledFrom(values).Draw(t, "value"))
		}
		data := []byte(blank + "{" + strings.Join(members, blank+",") + blank + "}" + blank)
		var got, want contract.ReservationCreate
		if !table.readBody(data, reflect.ValueOf(&got).Elem()) {
			return
		}
		taken++
		var parsed any
		require.NoError(t, json.Unmarshal(data, &parsed))
		found := &huma.ValidateResult{}
		huma.Validate(registry, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, parsed, found)
		require.Empty(t, found.Errors, "%s", data)
		require.NoError(t, json.Unmarshal(data, &want))
		require.Equal(t, want, got, "%s", data)
	})
	require.Positive(t, taken)
}

// TestBrokenBodiesAreNotPlain: each beginning of a plain body, and each with a character
// changed to one that is never right there.
func TestBrokenBodiesAreNotPlain(t *testing.T) {
	t.Parallel()
	table, _, _ := inputOf[book[contract.ReservationCreate]](t, "createReservation")
	for i := range usualBooking {
		for _, broken := range []string{usualBooking[:i], usualBooking[:i] + "\x00" + usualBooking[i:],
			usualBooking[:i] + `\` + usualBooking[i:]} {
			var got contract.ReservationCreate
			require.False(t, table.readBody([]byte(broken), reflect.ValueOf(&got).Elem()), "%q", broken)
		}
	}
	for _, broken := range []string{usualBooking + "1", `{"gpus":1,"gpus":2}`, `{"gpus":01}`, `{"gpus":1,}`, `{,}`, `[]`,
		`{"gpus" 1}`, `{"gpus":1 "pool":"lab"}`} {
		var got contract.ReservationCreate
		require.False(t, table.readBody([]byte(broken), reflect.ValueOf(&got).Elem()), "%q", broken)
	}
}

// Patterns match as regular expressions do.
func TestPatternsMatchAsRegularExpressions(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"^[!-~]+$", "^[a-z0-9é]+$", "^[^/]+$", "^[a-z]*$", "[a-z]+", "^a+$", "(?i)^[a-z]+$",
		"(?m)^[a-z]+$"} {
		matches, want := matcherOf(pattern), regexp.MustCompile(pattern)
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.OneOf(rapid.StringMatching("[!-~]{0,5}"), rapid.StringMatching("[a-z\n]{0,5}"), rapid.String(),
				rapid.SampledFrom([]string{"", "a\n", "é", "\xff", "a\xffb", "/", "\ufffd"})).Draw(t, "text")
			require.Equal(t, want.MatchString(text), matches(text), "%q %q", pattern, text)
		})
	}
}
