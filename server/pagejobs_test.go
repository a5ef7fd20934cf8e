package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// viewPage is the page as a key sees it.
func (w *world) viewPage(key string) string {
	w.t.Helper()
	form := url.Values{"key": {w.keys[key]}}.Encode()
	cookies := w.browsePage(http.MethodPost, "/login", form, nil).Result().Cookies()
	return w.browsePage(http.MethodGet, "/", "", cookies).Body.String()
}

// The page shows what runs, who comes next and how many more there are, and to a tenant its own jobs alone.
func TestThePageShowsJobs(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	f.createTenant("other")
	require.Contains(t, f.viewPage("root"), "No job runs or waits")
	running := f.submit("root", `{"pool":"lab","gpus":4,"name":"<b>bold</b>","command":["true"]}`)
	f.submit("root", `{"pool":"lab","gpus":4,"name":"second","command":["true"]}`)
	f.schedule()
	f.submit("root", `{"pool":"lab","gpus":2,"name":"many","command":["true"],"array":{"first":0,"last":11}}`)
	f.submit("other", `{"pool":"lab","gpus":1,"name":"theirs","priority":"low","command":["true"]}`)
	f.submit("root", `{"pool":"lab","gpus":1,"name":"kept","command":["true"],"hold":true}`)
	f.schedule()
	f.clock.Advance(90 * time.Second)

	page := f.viewPage("root")
	require.Contains(t, page, "<b>lab</b>: 2 running, 13 waiting, 1 held")
	require.Contains(t, page, running[0].ID)
	require.Contains(t, page, `<span class="state scheduled">scheduled</span>`)
	require.Contains(t, page, "&lt;b&gt;bold")
	require.NotContains(t, page, "<b>bold")
	require.Contains(t, page, `<td data-is="place">1<th`)
	require.Contains(t, page, "many[0]")
	require.Equal(t, 10, strings.Count(page, `<td data-is="place">`), "the first ten")
	require.Contains(t, page, "and 3 more: <code>forewarm queue --pool lab</code>")
	require.Contains(t, page, `<td data-is="waits for">1 min 30 s`)
	require.Contains(t, page, `<td data-is="who">root<`)

	theirs := f.viewPage("other")
	require.Contains(t, theirs, "<b>lab</b>: 0 running, 1 waiting")
	require.Contains(t, theirs, "theirs")
	require.Contains(t, theirs, `<td data-is="place">13<th`, "among all")
	for _, others := range []string{"many", "second", "bold", running[0].ID} {
		require.NotContains(t, theirs, others)
	}
}

// What runs is bounded, too.
func TestThePageBoundsWhatRuns(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	pool := ask[contract.Pool](f.world, "root", http.MethodGet, "/v1/pools/"+f.pool, "")
	pool = ask[contract.Pool](f.world, "root", http.MethodPatch, "/v1/pools/"+f.pool, `{"max_nodes":14}`,
		"If-Match", fmt.Sprintf("%q", fmt.Sprint(pool.Version)))
	f.warmNodes(pool, 14)
	own := ask[contract.Whoami](f.world, "root", http.MethodGet, "/v1/whoami", "").OrganizationID
	ask[contract.QuotaChanged](f.world, "root", http.MethodPut, "/v1/organizations/"+own+"/quota",
		`{"max_gpus":56,"speculation_per_day":{"amount":"1","currency":"USD"}}`, "If-Match", `"1"`)
	f.nodes = ask[contract.List[contract.Node]](f.world, "root", http.MethodGet, "/v1/nodes", "").Items
	for i := 2; i < len(f.nodes); i++ {
		f.join(i, "boot", fmt.Sprint("daemon", i))
	}
	for i := range 55 {
		f.submit("root", fmt.Sprintf(`{"pool":"lab","gpus":1,"name":"j%d","command":["true"]}`, i))
	}
	for range 4 { // a pass starts sixteen
		f.schedule()
	}
	page := f.viewPage("root")
	require.Contains(t, page, "and 5 more: <code>forewarm jobs list --state running</code>")
	require.Equal(t, 50, strings.Count(page, `<span class="state scheduled">`))
}
