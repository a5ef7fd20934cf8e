package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server"
)

// bad is a request that can never be right.
type bad struct {
	key, method, path, body string
	code                    string
	pointer                 string // of the first wrong value
}

// journalLength counts what changed something.
func (w *world) journalLength() int {
	w.t.Helper()
	return len(slices.DeleteFunc(ask[contract.EventList](w, "root", http.MethodGet, "/v1/events?limit=500", "").Items,
		func(e contract.Event) bool { return strings.HasSuffix(e.Type, ".refused") })) // they tell why nothing changed
}

// refuseAll checks that each request is refused by name, with a way out, and
// leaves no trace: the journal tells of every change.
func (w *world) refuseAll(cases map[string]bad) {
	w.t.Helper()
	before := w.journalLength()
	for name, c := range cases {
		if c.key == "" {
			c.key = "root"
		}
		if c.method == "" {
			c.method = http.MethodPost
		}
		p := w.refuse(c.key, c.method, c.path, c.body, "Idempotency-Key", "bad-"+strings.ReplaceAll(name, " ", "-"))
		require.GreaterOrEqual(w.t, p.Status, 400, name)
		require.Less(w.t, p.Status, 500, "%s: %+v", name, p)
		require.Equal(w.t, c.code, p.Code, "%s: %+v", name, p)
		require.NotEmpty(w.t, p.Detail, name)
		require.NotEmpty(w.t, p.Errors, "%s must name the field: %+v", name, p)
		require.Equal(w.t, c.pointer, p.Errors[0].Pointer, "%s: %+v", name, p)
		require.NotEmpty(w.t, p.Errors[0].Message, name)
		require.NotContains(w.t, p.Detail+p.Errors[0].Message, "unmarshal", "%s: people do not read Go", name)
	}
	require.Equal(w.t, before, w.journalLength(), "a refused request changed something")
}

// TestTrapG is trap g: negative, zero, huge and NaN values are refused and change
// nothing.
func TestTrapG(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	cases := map[string]bad{}
	for name, value := range map[string]string{
		"negative": "-1", "zero": "0", "huge": "1000000000", "fraction": "1.5", "text": `"2"`, "true": "true",
		"null": "null",
		"list": "[1]", "beyond int64": "99999999999999999999", "exponent": "1e300",
		"whole exponent": "1e0", "whole fraction": "1.0",
	} {
		cases["allocation gpus "+name] = bad{path: "/v1/allocations", body: `{"pool":"lab","gpus":` + value + `}`,
			code: contract.CodeValidationFailed, pointer: "/gpus"}
		cases["reservation gpus "+name] = bad{path: "/v1/reservations",
			body: `{"pool":"lab","gpus":` + value + `,"start":"2026-03-02T09:00:00Z","end":"2026-03-02T10:00:00Z"}`,
			code: contract.CodeValidationFailed, pointer: "/gpus"}
		cases["schedule gpus "+name] = bad{path: "/v1/schedules",
			body: `{"pool":"lab","name":"x","gpus":` + value +
				`,"start_local":"2026-03-02T09:00:00","timezone":"UTC","rrule":"FREQ=DAILY","duration_seconds":60}`,
			code: contract.CodeValidationFailed, pointer: "/gpus"}
		cases["max_nodes "+name] = bad{path: "/v1/pools",
			body: strings.Replace(poolBody, `"max_nodes":2`, `"max_nodes":`+value, 1),
			code: contract.CodeValidationFailed, pointer: "/max_nodes"}
	}
	for _, value := range []string{"NaN", "Infinity", "-Infinity", "1e999", "-1e999", "0x10", "01", "+1", ".5", "nul"} {
		cases["not a number "+value] = bad{path: "/v1/allocations", body: `{"pool":"lab","gpus":` + value + `}`,
			code: contract.CodeMalformedJSON, pointer: "/gpus"}
	}
	for _, amount := range []string{"-1", "NaN", "1e9", "1,5", "", "99999999999", "1.0000001", " 1", "1 "} {
		cases["money "+amount] = bad{path: "/v1/pools", body: strings.Replace(poolBody, `"8.40"`, `"`+amount+`"`, 1),
			code: contract.CodeValidationFailed, pointer: "/price_per_node_hour/amount"}
	}
	w.refuseAll(cases)
}

// TestTrapH is trap h: a client cannot set usage, ids, role or tenant.
func TestTrapH(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	other := w.createTenant("other")
	w.createKey("member", "member")
	w.createKey("admin", "admin")
	cases := map[string]bad{}
	for field, value := range map[string]string{
		"id": `"alc_1"`, "state": `"active"`, "organization_id": `"` + other.ID + `"`, "held_by": `"somebody"`,
		"requested_at": `"2020-01-01T00:00:00Z"`, "version": "7", "devices": "[]", "wait_seconds": "0",
		"role": `"operator"`, "cost": "0",
	} {
		cases["allocation "+field] = bad{path: "/v1/allocations", key: "member",
			body: `{"pool":"lab","gpus":1,"` + field + `":` + value + `}`,
			code: contract.CodeValidationFailed, pointer: "/" + field}
		if field != "role" && field != "organization_id" {
			cases["key "+field] = bad{path: "/v1/keys", key: "admin",
				body: `{"name":"n","kind":"person","role":"viewer","` + field + `":` + value + `}`,
				code: contract.CodeValidationFailed, pointer: "/" + field}
		}
	}
	w.refuseAll(cases)

	before := w.journalLength()
	require.Equal(t, contract.CodeValidationFailed,
		w.refuse("admin", http.MethodPost, "/v1/keys", `{"name":"n","kind":"person","role":"operator"}`).Code,
		"a key makes none stronger than itself")
	require.Equal(t, contract.CodePermissionDenied, w.refuse("admin", http.MethodPost, "/v1/keys",
		`{"name":"n","kind":"person","role":"viewer","organization_id":"`+other.ID+`"}`).Code,
		"nor one for another tenant")
	require.Equal(t, contract.CodePermissionDenied, w.refuse("admin", http.MethodPost, "/v1/users",
		`{"email":"a@example.org","role":"admin","organization_id":"`+other.ID+`"}`).Code)
	require.Equal(t, before, w.journalLength())
}

func TestWrongWindowsZonesAndRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	reserve := func(start, end string) string {
		return fmt.Sprintf(`{"pool":"lab","gpus":1,"start":%q,"end":%q}`, start, end)
	}
	schedule := func(from, to string) string {
		good := `{"pool":"lab","name":"standup","gpus":1,` +
			`"start_local":"2026-03-02T09:00:00","timezone":"Europe/Berlin",` +
			`"rrule":"FREQ=DAILY","duration_seconds":3600}`
		require.Contains(t, good, from)
		return strings.Replace(good, from, to, 1)
	}
	w.refuseAll(map[string]bad{
		"window in the past": {path: "/v1/reservations",
			body: reserve("2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"), code: contract.CodeWindowInPast,
			pointer: "/start"},
		"window backwards": {path: "/v1/reservations",
			body: reserve("2026-03-02T10:00:00Z", "2026-03-02T09:00:00Z"), code: contract.CodeValidationFailed,
			pointer: "/end"},
		"window empty": {path: "/v1/reservations",
			body: reserve("2026-03-02T10:00:00Z", "2026-03-02T10:00:00Z"), code: contract.CodeValidationFailed,
			pointer: "/end"},
		"window far ahead": {path: "/v1/reservations",
			body: reserve("2029-03-02T10:00:00Z", "2029-03-02T11:00:00Z"), code: contract.CodeValidationFailed,
			pointer: "/start"},
		"window too long": {path: "/v1/reservations",
			body: reserve("2026-03-02T10:00:00Z", "2026-06-02T11:00:00Z"), code: contract.CodeWindowTooLong,
			pointer: "/end"},
		"start without offset": {path: "/v1/reservations", body: reserve("2026-03-02T10:00:00", "2026-03-02T11:00:00Z"),
			code: contract.CodeValidationFailed, pointer: "/start"},
		"start is no time": {path: "/v1/reservations", body: reserve("tomorrow", "2026-03-02T11:00:00Z"),
			code: contract.CodeValidationFailed, pointer: "/start"},
		"too many GPUs": {path: "/v1/reservations",
			body: strings.Replace(reserve("2026-03-02T10:00:00Z", "2026-03-02T11:00:00Z"), `"gpus":1`, `"gpus":64`, 1),
			code: contract.CodeNoMatchingHardware, pointer: "/gpus"},
		"unknown pool": {path: "/v1/allocations", body: `{"pool":"nowhere","gpus":1}`,
			code: contract.CodeValidationFailed, pointer: "/pool"},
		"lease too long": {path: "/v1/allocations", body: `{"pool":"lab","gpus":1,"lease_seconds":31000000}`,
			code: contract.CodeWindowTooLong, pointer: "/lease_seconds"},
		"wait negative": {path: "/v1/allocations", body: `{"pool":"lab","gpus":1,"waited_seconds":-1}`,
			code: contract.CodeValidationFailed, pointer: "/waited_seconds"},
		"wait too long": {path: "/v1/allocations", body: `{"pool":"lab","gpus":1,"waited_seconds":2592001}`,
			code: contract.CodeValidationFailed, pointer: "/waited_seconds"},
		"lease negative": {path: "/v1/allocations", body: `{"pool":"lab","gpus":1,"lease_seconds":-5}`,
			code: contract.CodeValidationFailed, pointer: "/lease_seconds"},
		"class": {path: "/v1/reservations",
			body: strings.Replace(reserve("2026-03-02T10:00:00Z", "2026-03-02T11:00:00Z"), `"gpus":1`,
				`"gpus":1,"class":"sure"`, 1), code: contract.CodeValidationFailed, pointer: "/class"},
		"unknown zone": {path: "/v1/schedules", body: schedule("Europe/Berlin", "Europe/Atlantis"),
			code: contract.CodeUnknownTimeZone, pointer: "/timezone"},
		"the machine's zone": {path: "/v1/schedules", body: schedule("Europe/Berlin", "Local"),
			code: contract.CodeUnknownTimeZone, pointer: "/timezone"},
		"zone is a path": {path: "/v1/schedules", body: schedule("Europe/Berlin", "../../etc/passwd"),
			code: contract.CodeUnknownTimeZone, pointer: "/timezone"},
		"hourly": {path: "/v1/schedules", body: schedule("FREQ=DAILY", "FREQ=HOURLY"),
			code: contract.CodeUnsupportedRRule, pointer: "/rrule"},
		"rule is none": {path: "/v1/schedules", body: schedule("FREQ=DAILY", "weekdays"),
			code: contract.CodeUnsupportedRRule, pointer: "/rrule"},
		"schedule start": {path: "/v1/schedules", body: schedule("2026-03-02T09:00:00", "2026-02-30T09:00:00"),
			code: contract.CodeValidationFailed, pointer: "/start_local"},
		"schedule length zero": {path: "/v1/schedules", body: schedule("3600", "0"),
			code: contract.CodeValidationFailed, pointer: "/duration_seconds"},
		"schedule length huge": {path: "/v1/schedules", body: schedule("3600", "99999999"),
			code: contract.CodeValidationFailed, pointer: "/duration_seconds"},
		"schedule policy": {path: "/v1/schedules", body: schedule(`"gpus":1`, `"gpus":1,"dst_policy":"guess"`),
			code: contract.CodeValidationFailed, pointer: "/dst_policy"},
		"schedule exdate": {path: "/v1/schedules", body: schedule(`"gpus":1`, `"gpus":1,"exdates":["24.12."]`),
			code: contract.CodeValidationFailed, pointer: "/exdates"},
		"pool boots": {path: "/v1/pools", body: strings.Replace(poolBody, `"simulated":true`,
			`"boot_p50_seconds":90,"boot_p95_seconds":10`, 1), code: contract.CodeValidationFailed,
			pointer: "/boot_p95_seconds"},
		"pool minimum": {path: "/v1/pools", body: strings.Replace(poolBody, `"simulated":true`, `"min_nodes":3`,
			1), code: contract.CodeValidationFailed, pointer: "/min_nodes"},
		"pool name": {path: "/v1/pools", body: strings.Replace(poolBody, `"lab"`, `"A Lab"`, 1),
			code: contract.CodeValidationFailed, pointer: "/name"},
		"e-mail": {path: "/v1/users", body: `{"email":"nobody","role":"member"}`,
			code: contract.CodeValidationFailed, pointer: "/email"},
		"user role": {path: "/v1/users", body: `{"email":"a@example.org","role":"operator"}`,
			code: contract.CodeValidationFailed, pointer: "/role"},
		"agent without caps": {path: "/v1/keys", body: `{"name":"n","kind":"agent","role":"member"}`,
			code: contract.CodeValidationFailed, pointer: "/caps"},
	})
}

// Zero never means the default: what is to be the default is left out. Where a
// zero can be meant, it is taken as it stands.
func TestZeroIsNoDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	cases := map[string]bad{
		"lease": {path: "/v1/allocations", body: `{"pool":"lab","gpus":1,"lease_seconds":0}`,
			pointer: "/lease_seconds"},
		"planned lease": {path: "/v1/plans", pointer: "/request/lease_seconds",
			body: `{"kind":"allocate","request":{"pool":"lab","gpus":1,"lease_seconds":0}}`},
		"claim": {path: "/v1/reservations/rsv_0/claim", body: `{"lease_seconds":0}`, pointer: "/lease_seconds"},
		"key": {path: "/v1/keys", body: `{"name":"n","kind":"person","role":"viewer","expires_in_seconds":0}`,
			pointer: "/expires_in_seconds"},
		"alternate": {path: "/v1/pools", pointer: "/alternates/0/boot_p50_seconds",
			body: strings.Replace(poolBody, `"simulated":true`,
				`"alternates":[{"provisioner":"b","price_per_node_hour":{"amount":"1","currency":"USD"},`+
					`"boot_p50_seconds":0}]`, 1)},
	}
	for _, field := range []string{"warm_hold_seconds", "max_lease_seconds", "create_window_seconds",
		"boot_p50_seconds", "boot_p95_seconds"} {
		cases["pool "+field] = bad{path: "/v1/pools",
			body: strings.Replace(poolBody, `"simulated"`, `"`+field+`":0,"simulated"`, 1), pointer: "/" + field}
	}
	for name, c := range cases {
		c.code = contract.CodeValidationFailed
		cases[name] = c
	}
	w.refuseAll(cases)
	p := w.refuse("root", http.MethodPatch, "/v1/pools/lab", `{"create_window_seconds":0}`, "If-Match", `"1"`)
	require.Equal(t, "create_window_seconds must be at least 1 s", p.Detail)

	prompt := strings.Replace(poolBody, `"lab"`, `"prompt"`, 1)
	made := ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools",
		strings.Replace(prompt, `"simulated"`, `"idle_release_seconds":0,"simulated"`, 1))
	require.Zero(t, made.IdleReleaseSeconds)
	usual := ask[contract.Pool](w, "root", http.MethodGet, "/v1/pools/lab", "")
	require.EqualValues(t, 600, usual.IdleReleaseSeconds)
	require.EqualValues(t, 600, usual.CreateWindow)
}

func TestWrongForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.refuseAll(map[string]bad{
		"broken": {path: "/v1/allocations", body: `{"gpus":1`, code: contract.CodeMalformedJSON, pointer: ""},
		"two values": {path: "/v1/allocations", body: `{"gpus":1}{}`, code: contract.CodeMalformedJSON,
			pointer: ""},
		"same name twice": {path: "/v1/allocations", body: `{"pool":"lab","gpus":1,"gpus":2}`,
			code: contract.CodeMalformedJSON, pointer: "/gpus"},
		"too deep": {path: "/v1/allocations", body: strings.Repeat("[", 40) + strings.Repeat("]", 40),
			code: contract.CodeMalformedJSON, pointer: strings.Repeat("/0", 33)},
		"not UTF-8": {path: "/v1/allocations", body: "{\"pool\":\"\xff\",\"gpus\":1}",
			code: contract.CodeMalformedJSON, pointer: ""},
		"no body": {path: "/v1/allocations", body: "", code: contract.CodeMalformedJSON, pointer: ""},
		"a list":  {path: "/v1/allocations", body: `[]`, code: contract.CodeValidationFailed, pointer: ""},
		"missing": {path: "/v1/allocations", body: `{"pool":"lab"}`, code: contract.CodeValidationFailed,
			pointer: "/gpus"},
		"other case": {path: "/v1/allocations", body: `{"pool":"lab","gpus":1,"GPUs":1}`,
			code: contract.CodeValidationFailed, pointer: "/GPUs"},
		"limit": {method: http.MethodGet, path: "/v1/pools?limit=0", code: contract.CodeInvalidParameter,
			pointer: "limit"},
		"limit huge": {method: http.MethodGet, path: "/v1/pools?limit=100000", code: contract.CodeInvalidParameter,
			pointer: "limit"},
		"limit text": {method: http.MethodGet, path: "/v1/pools?limit=all", code: contract.CodeInvalidParameter,
			pointer: "limit"},
		"parameter": {method: http.MethodGet, path: "/v1/pools?sort=name", code: contract.CodeInvalidParameter,
			pointer: "sort"},
		"cursor": {method: http.MethodGet, path: "/v1/pools?cursor=abc", code: contract.CodeInvalidCursor,
			pointer: "cursor"},
		"cursor of SQL": {method: http.MethodGet, path: "/v1/pools?cursor=cG9sOicgT1IgMT0x",
			code: contract.CodeInvalidCursor, pointer: "cursor"},
		"state": {method: http.MethodGet, path: "/v1/nodes?state=warmish",
			code: contract.CodeInvalidParameter, pointer: "state[0]"},
		"pool filter": {method: http.MethodGet, path: "/v1/nodes?pool=nowhere", code: contract.CodeInvalidParameter,
			pointer: "pool"},
		"after": {method: http.MethodGet, path: "/v1/events?after=-1", code: contract.CodeInvalidParameter,
			pointer: "after"},
		"report period": {method: http.MethodGet,
			path: "/v1/reports/summary?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
			code: contract.CodeInvalidParameter, pointer: "to"},
		"report century": {method: http.MethodGet,
			path: "/v1/reports/summary?from=1926-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
			code: contract.CodeInvalidParameter, pointer: "to"},
		"report time": {method: http.MethodGet, path: "/v1/reports/summary?from=yesterday",
			code: contract.CodeInvalidParameter, pointer: "from"},
	})
}

func TestUnknownFieldsNameTheClosest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	p := w.refuse("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1,"lease_second":60}`,
		"Idempotency-Key", "k")
	require.Equal(t, contract.CodeValidationFailed, p.Code)
	require.Contains(t, p.Errors[0].Message, "did you mean lease_seconds?")
	require.Contains(t, p.Errors[0].Allowed, "gpus")
	require.NotContains(t, p.Errors[0].Allowed, "", "what is embedded has no name")
	for wrong, meant := range map[string]string{"pool_id": "pool", "pool_name": "pool",
		"leas_seconds": "lease_seconds"} {
		p = w.refuse("root", http.MethodPost, "/v1/allocations", `{"`+wrong+`":"lab","gpus":1}`, "Idempotency-Key",
			"k"+wrong)
		require.Contains(t, p.Errors[0].Message, "did you mean "+meant+"?", wrong)
		require.Equal(t, "Rename it to "+meant, p.Fixes[0].Label)
	}
	p = w.refuse("root", http.MethodPost, "/v1/keys",
		`{"organization":"acme","name":"k","kind":"person","role":"viewer"}`)
	require.Contains(t, p.Errors[0].Message, "did you mean organization_id?")
	user := ask[contract.User](w, "root", http.MethodPost, "/v1/users", `{"email":"ada@example.org","role":"member"}`,
		"Idempotency-Key", "u")
	p = w.refuse("root", http.MethodPut, "/v1/users/"+user.ID+"/caps", `{"max_gpus":2}`, "If-Match", `"1"`)
	require.Equal(t, "/max_gpus", p.Errors[0].Pointer)
	require.Equal(t, "is not a field here; it belongs under caps", p.Errors[0].Message)
	p = w.refuse("root", http.MethodPost, "/v1/users",
		`{"email":"eve@example.org","role":"member","caps":{"email":"x"}}`, "Idempotency-Key", "v")
	require.NotContains(t, p.Errors[0].Message, "did you mean email?")
}

func TestBodiesHaveLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.refuse("root", http.MethodPost, "/v1/allocations", `{"name":"`+strings.Repeat("x", 1<<20)+`"}`)
	require.Equal(t, contract.CodeBodyTooLarge, p.Code)
	p = w.refuse("root", http.MethodPost, "/v1/allocations", `gpus=1`, "Content-Type",
		"application/x-www-form-urlencoded")
	require.Equal(t, contract.CodeUnsupportedMediaType, p.Code)
	p = w.refuse("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`)
	require.Equal(t, contract.CodeMissingIdempotencyKey, p.Code)
	require.NotEmpty(t, p.Fixes)
}

// What passes the check of form is JSON to the decoder behind it, and the check
// itself survives anything.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,2,{"b":null}]}`, `{"a":1,}`, `[`, `1e999`, `{"a":1 "b":2}`, "\xff",
		`"\ud800"`, ``, `{"a":1}{}`, `]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if server.AcceptsJSON(data) {
			require.True(t, json.Valid(data), "%q", data)
		}
	})
}

// A refusal names so many wrong values and counts the others: a body of a megabyte is not answered by sixty of them.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.createPool()
	w.createAgentKey("bot")
	var fields, windows strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&fields, `,"k%d":1`, i)
	}
	for i := range 900 {
		fmt.Fprintf(&windows, `,{"gpus":"%d","more":1}`, i)
	}
	long := `"` + strings.Repeat("n", 500_000) + `":1`
	for name, c := range map[string]struct{ key, method, path, body, last string }{
		"fields": {"root", http.MethodPost, "/v1/jobs", `{"pool":"lab","gpus":1,"command":["true"]` + fields.String() + `}`,
			"49968 more values of this request are wrong"},
		"windows": {"bot", http.MethodPut, "/v1/agent/plan", `{"pool_id":"` + pool.ID + `","windows":[` +
			windows.String()[1:] + `]}`, ""},
		"a name": {"root", http.MethodPost, "/v1/jobs", `{"pool":"lab","gpus":1,"command":["true"],` + long + `}`, ""},
	} {
		out := w.send(c.key, c.method, c.path, c.body, "Idempotency-Key", "much-"+strings.ReplaceAll(name, " ", "-"))
		require.Equal(t, http.StatusUnprocessableEntity, out.Code, name)
		require.Less(t, out.Body.Len(), 64<<10, name)
		var p contract.Problem
		require.NoError(t, json.Unmarshal(out.Body.Bytes(), &p))
		if name == "a name" {
			require.Len(t, p.Errors, 1, name)
			continue
		}
		require.Len(t, p.Errors, 33, name)
		require.Equal(t, "more", p.Errors[32].Code, name)
		require.Contains(t, p.Errors[32].Message, c.last, name)
	}
}
