package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// datedKeys gives keys that say when they were made.
func datedKeys(at time.Time) map[string]string {
	millis := at.UnixMilli()
	ulid, rest := []byte("0000000000ABCDEFGHJKMNPQRS"), millis
	for i := 9; i >= 0; i-- {
		ulid[i] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[rest%32]
		rest /= 32
	}
	return map[string]string{
		"UUIDv7": fmt.Sprintf("%08x-%04x-7abc-8def-0123456789ab", millis>>16, millis&0xffff), "ULID": string(ulid),
		"lower-case ULID": strings.ToLower(string(ulid)),
	}
}

// An answer is kept for a week. A key that says that it is older is not taken
// for a new one.
func TestIdempotencyKeysExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	send := func(key string) *httptest.ResponseRecorder {
		return w.send("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`, "Idempotency-Key", key)
	}
	for kind, key := range datedKeys(begin.Add(-ledger.KeepAnswers - time.Second)) {
		p := w.refuse("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`, "Idempotency-Key", key)
		require.Equal(t, contract.CodeIdempotencyKeyExpired, p.Code, kind)
		require.Equal(t, contract.HeaderIdempotencyKey, p.Errors[0].Pointer)
		require.Contains(t, p.Detail, "7 days")
		require.NotEmpty(t, p.Fixes)
	}
	for kind, key := range datedKeys(begin.Add(-ledger.KeepAnswers + time.Second)) {
		require.Equal(t, 202, send(key).Code, kind)
		w.clock.Advance(2 * time.Second)
		require.Equal(t, "true", send(key).Header().Get("Idempotency-Replayed"), "%s: what is still kept is answered",
			kind)
		w.clock.Set(begin)
	}
	for _, key := range []string{"4f6c1f0e-9d3b-4a77-8b1a-0123456789ab", "0000000000ABCDEFGHJKMNPQRS",
		"any-text-of-26-characters!"} {
		require.Equal(t, 202, send(key).Code, "%s says nothing of when it was made", key)
	}
}
