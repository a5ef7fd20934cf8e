package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// With a preference that only huma reads, the same requests get the same answers, to
// the byte: those of the shortcut are not known by anything.
func TestTheShortcutAnswersAsHuma(t *testing.T) {
	t.Parallel()
	short, long := newWorld(t), newWorld(t)
	window := func(gpus, hours int) string {
		return fmt.Sprintf(`{"pool":"lab","gpus":%d,"start":%q,"end":%q,"name":"n"}`, gpus,
			begin.Add(24*time.Hour).Format(time.RFC3339), begin.Add(time.Duration(24+hours)*time.Hour).Format(time.RFC3339))
	}
	for _, ask := range [][]string{
		{"POST", "/v1/pools", poolBody},
		{"POST", "/v1/reservations", window(1, 1), "Idempotency-Key", "a"},
		{"POST", "/v1/reservations", window(1, 1), "Idempotency-Key", "a"},
		{"POST", "/v1/reservations", window(2, 1), "Idempotency-Key", "a"},
		{"POST", "/v1/reservations", window(1, 1)},
		{"POST", "/v1/reservations", window(1, 1), "Idempotency-Key", "a b"},
		{"POST", "/v1/reservations", window(1, -1), "Idempotency-Key", "b"},
		{"POST", "/v1/reservations", window(9, 1), "Idempotency-Key", "c"},
		{"POST", "/v1/reservations", window(1, 9000), "Idempotency-Key", "d"},
		{"POST", "/v1/reservations", `{"pool":"none","gpus":1}`, "Idempotency-Key", "e"},
		{"POST", "/v1/reservations", `{"pool":"lab","gpus":0}`, "Idempotency-Key", "e"},
		{"POST", "/v1/reservations", `{"pool":"lab","gpus":1,"color":"red"}`, "Idempotency-Key", "e"},
		{"POST", "/v1/reservations?dry_run=true", window(1, 1)},
		{"POST", "/v1/reservations", "{}", "Idempotency-Key", "e", "Content-Type", "application/json; charset=utf-8"},
		{"POST", "/v1/allocations", `{"pool":"lab","gpus":1}`, "Idempotency-Key", "f", "Prefer", "nothing"},
		{"POST", "/v1/users", `{"email":"ada@example.org","role":"member"}`},
		{"POST", "/v1/users", `{"email":"ada@example.org","role":"member"}`},
	} {
		first := short.send("root", ask[0], ask[1], ask[2], ask[3:]...)
		second := long.send("root", ask[0], ask[1], ask[2], append(ask[3:], "Accept", "application/json;q=0.9")...)
		require.Equal(t, second.Code, first.Code, ask)
		require.Equal(t, second.Header(), first.Header(), ask)
		require.Equal(t, second.Body.String(), first.Body.String(), ask)
		require.NotEqual(t, http.StatusNotAcceptable, first.Code)
	}
}
