package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// Each request of a batch is held to what one that comes alone is held to, and
// what is wrong with it is its own.
func TestARequestOfABatchIsCheckedLikeOneAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	const good = `{"pool":"lab","gpus":1,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`
	bad := []struct{ change, field string }{
		{`"workload":"odd"`, "/workload"},
		{`"spread":"odd"`, "/spread"},
		{`"class":"odd"`, "/class"},
		{`"min_duration_seconds":18446744074`, "/min_duration_seconds"},
		{`"GPUS":9`, "/GPUS"},
		{`"gpus":9`, "/gpus"},
		{`"g\u0070us":9`, "/gpus"},
		{`"nodes":0`, "/nodes"},
		{`"name":"` + strings.Repeat("a", 64) + `"`, "/name"},
		{`"name":7`, "/name"},
		{`"surprise":{"gpus":1}`, "/surprise"},
		{`"queue":"yes"`, "/queue"},
	}
	items := []string{good}
	for _, b := range bad {
		items = append(items, strings.TrimSuffix(good, "}")+","+b.change+"}")
	}
	items = append(items, `7`, `[]`, `null`, `{"gpus":1e999}`, good)
	for name, body := range map[string]string{"array": "[" + strings.Join(items, ",") + "]",
		"lines": strings.Join(items, "\n")} {
		out := w.send("root", http.MethodPost, "/v1/reservations/batch", body, "Idempotency-Key", name)
		require.Equal(t, http.StatusOK, out.Code, out.Body.String())
		var got contract.BatchResults
		require.NoError(t, json.Unmarshal(out.Body.Bytes(), &got))
		require.Equal(t, 2, got.Accepted)
		for i, b := range bad {
			alone := w.refuse("root", http.MethodPost, "/v1/reservations", items[i+1])
			item := got.Items[i+1]
			require.Equal(t, i+1, item.Index)
			require.Equal(t, b.field, item.Field, b.change)
			require.Equal(t, alone.Code, item.Code, b.change)
			require.Equal(t, alone.Status, item.Status, b.change)
			require.Equal(t, alone.Errors[0].Pointer, item.Field, b.change)
			require.NotEmpty(t, item.Message)
		}
		for _, item := range got.Items[len(bad)+1 : len(items)-1] {
			require.GreaterOrEqual(t, item.Status, 400)
			require.Less(t, item.Status, 500)
		}
	}
}

// TestABatchIsCheckedBehindAWrongRequest: what is wrong with one request does not hide
// what is in those behind it.
func TestABatchIsCheckedBehindAWrongRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	hidden := `{"pool":"lab","gpus":1,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z",` +
		`"name":"a\u001b[31m\u202e"}`
	deep := strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200)
	for _, first := range []string{`{"x":1,"x":1}`, `{"gpus":1e999}`, `{"name":1e999}`, `{"x":` + deep + `}`} {
		for _, body := range []string{"[" + first + "," + hidden + "]", first + "\n" + hidden} {
			got := w.send("root", http.MethodPost, "/v1/reservations/batch", body, "Idempotency-Key", first)
			require.GreaterOrEqual(t, got.Code, 400, body)
			require.Less(t, got.Code, 500, body)
		}
	}
}

// What is no batch is refused as a whole, of reservations and of jobs alike.
func TestWhatIsNoBatchIsRefusedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, bodies := range map[string][]string{
		"/v1/reservations/batch": {`{}`, " { }\n", `{"items":[]}`, `{"items":{}}`},
		"/v1/jobs/batch":         {`{}`, " { }\n", `{"items":{}}`},
	} {
		for _, body := range bodies {
			p := w.refuse("root", http.MethodPost, path, body, "Idempotency-Key", "none")
			require.Equal(t, http.StatusUnprocessableEntity, p.Status, path+body)
			require.Contains(t, p.Detail, "must be an array", path+body)
		}
	}
}
