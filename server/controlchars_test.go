package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// Characters that no name has are refused before anything stores them, on every
// database alike: NUL, which PostgreSQL does not take, and what would act on who
// reads it.
func TestControlCharactersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	cases := map[string]bad{}
	for name, c := range map[string]string{
		"NUL": `\u0000`, "escape": `\u001b[2J`, "newline": `\n`, "tab": `\t`, "C1": `\u009b`, "C1 itself": "\u009b",
		"DEL":      "\x7f",
		"override": `\u202e`, "override itself": "\u202e", "isolate": "\u2066", "mark": "\u200f",
		"line separator": `\u2028`,
	} {
		cases["name "+name] = bad{path: "/v1/allocations", body: `{"pool":"lab","gpus":1,"name":"a` + c + `b"}`,
			code: contract.CodeValidationFailed, pointer: "/name"}
		cases["batch "+name] = bad{path: "/v1/reservations/batch",
			body: `[{"pool":"lab","gpus":1},{"name":"a` + c + `b"}]`, code: contract.CodeValidationFailed,
			pointer: "/1/name"}
		cases["lines "+name] = bad{path: "/v1/reservations/batch",
			body: `{"pool":"lab","gpus":1}` + "\n" + `{"name":"a` + c + `b"}`, code: contract.CodeValidationFailed,
			pointer: "/1/name"}
		cases["field "+name] = bad{path: "/v1/allocations", body: `{"pool":"lab","gpus":1,"na` + c + `me":1}`,
			code: contract.CodeValidationFailed, pointer: ""}
		cases["reason "+name] = bad{path: "/v1/prewarm/pause", body: `{"reason":"a` + c + `b"}`,
			code: contract.CodeValidationFailed, pointer: "/reason"}
		cases["inside "+name] = bad{path: "/v1/plans",
			body: `{"kind":"allocate","request":{"pool":"lab","gpus":1,"name":"` + c + `"}}`,
			code: contract.CodeValidationFailed, pointer: "/request/name"}
	}
	for name, c := range map[string]string{"NUL": "%00", "escape": "%1b", "newline": "%0a", "override": "%e2%80%ae",
		"no UTF-8": "%ff"} {
		cases["path "+name] = bad{method: http.MethodGet, path: "/v1/pools/a" + c, code: contract.CodeInvalidParameter,
			pointer: "path"}
		cases["query "+name] = bad{method: http.MethodGet, path: "/v1/nodes?pool=a" + c,
			code: contract.CodeInvalidParameter, pointer: "pool"}
		cases["subject "+name] = bad{method: http.MethodGet, path: "/v1/events?subject=" + c,
			code: contract.CodeInvalidParameter, pointer: "subject"}
	}
	cases["escape of nothing"] = bad{method: http.MethodGet, path: "/v1/nodes?pool=%zz",
		code: contract.CodeInvalidParameter, pointer: "query"}
	w.refuseAll(cases)
	require.Equal(t, 202, w.send("root", http.MethodPost, "/v1/allocations",
		`{"pool":"lab","gpus":1,"name":"Zoë \\ 訓練 \u00e9 🚀"}`, "Idempotency-Key", "plain").Code)
	out := w.send("root", http.MethodPost, "/v1/reservations/batch",
		`[{"pool":"lab","gpus":1,"name":"\u00e9\\","start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}]`,
		"Idempotency-Key", "plain-batch")
	require.Contains(t, out.Body.String(), `"accepted":1`)
}
