package gcetest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners/gcp/gcetest"
)

type object = map[string]any

const (
	zone     = "us-central1-a"
	aUUID    = "11111111-1111-4111-8111-111111111111"
	kind     = "a3-highgpu-8g"
	instance = "/instances/node-1"
)

type project struct {
	*gcetest.Cloud
	t     *testing.T
	clock *clock.Manual
	start time.Time
}

func newProject(t *testing.T, change ...func(*gcetest.Config)) project {
	start := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	p := project{t: t, clock: clock.NewManual(start), start: start}
	config := gcetest.Config{
		Project: "acme", Zones: []string{zone, "europe-west4-b"},
		Types: map[string]gcetest.Type{kind: {GPUs: 8, GPU: "NVIDIA H100", MemoryMiB: 81_559, Price: 36 * money.USD,
			Spot: 18 * money.USD}},
	}
	for _, c := range change {
		c(&config)
	}
	p.Cloud = gcetest.New(config, p.clock)
	return p
}

// callAPI asks for a path of the zone, or of the project when it starts with /.
func (p project) callAPI(method, path string, body any) (int, object) {
	p.t.Helper()
	if path[0] != '/' {
		path = "/zones/" + zone + "/" + path
	}
	text, err := json.Marshal(body)
	require.NoError(p.t, err)
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(p.t.Context(), method, "/compute/v1/projects/acme"+path,
		bytes.NewReader(text))
	p.ServeHTTP(answer, request)
	var decoded object
	require.NoError(p.t, json.Unmarshal(answer.Body.Bytes(), &decoded), answer.Body.String())
	return answer.Code, decoded
}

func (p project) mustCall(method, path string, body any) object {
	p.t.Helper()
	status, answer := p.callAPI(method, path, body)
	require.Equal(p.t, http.StatusOK, status, "%v", answer)
	return answer
}

func instanceBody(name string) object {
	return object{
		"name": name, "machineType": "zones/" + zone + "/machineTypes/" + kind, "disks": []object{{"boot": true}},
		"networkInterfaces": []object{{}}, "labels": object{"owner": "a"},
		"scheduling": object{"onHostMaintenance": "TERMINATE", "automaticRestart": false, "provisioningModel": "SPOT",
			"instanceTerminationAction": "DELETE"},
		"metadata": object{"items": []object{{"key": "enable-guest-attributes", "value": "TRUE"},
			{"key": "startup-script", "value": "#!"}}},
	}
}

func (p project) instanceStatus(name string) string {
	p.t.Helper()
	status, answer := p.callAPI(http.MethodGet, "instances/"+name, nil)
	if status == http.StatusNotFound {
		return "gone"
	}
	text, _ := answer["status"].(string)
	return text
}

func TestLife(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	op := p.mustCall(http.MethodPost, "instances?requestId="+aUUID, instanceBody("node-1"))
	require.Equal(t, "RUNNING", op["status"])
	require.Equal(t, aUUID, op["clientOperationId"])
	require.Equal(t, "PROVISIONING", p.instanceStatus("node-1"))
	p.clock.Advance(2 * time.Second)
	require.Equal(t, "STAGING", p.instanceStatus("node-1"))
	p.clock.Advance(10 * time.Second)
	require.Equal(t, "RUNNING", p.instanceStatus("node-1"))
	name, _ := op["name"].(string)
	require.Equal(t, "DONE", p.mustCall(http.MethodPost, "operations/"+name+"/wait", nil)["status"])
	status, _ := p.callAPI(http.MethodGet, "instances/node-1/getGuestAttributes?queryPath=forewarm/", nil)
	require.Equal(t, http.StatusNotFound, status)
	p.clock.Advance(time.Minute)
	require.Contains(t, p.mustCall(http.MethodGet, "instances/node-1/getGuestAttributes?queryPath=forewarm/", nil),
		"queryValue")
	p.mustCall(http.MethodDelete, "instances/node-1", nil)
	require.Equal(t, "STOPPING", p.instanceStatus("node-1"))
	status, _ = p.callAPI(http.MethodDelete, "instances/node-1", nil)
	require.Equal(t, http.StatusBadRequest, status)
	p.clock.Advance(20 * time.Second)
	require.Equal(t, "gone", p.instanceStatus("node-1"))
}

func TestNamesAndRequests(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	first := p.mustCall(http.MethodPost, "instances?requestId="+aUUID, instanceBody("node-1"))
	require.Equal(t, first["name"], p.mustCall(http.MethodPost, "instances?requestId="+aUUID,
		instanceBody("node-1"))["name"])
	status, answer := p.callAPI(http.MethodPost, "instances", instanceBody("node-1"))
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, jsonOf(t, answer), `"reason":"alreadyExists"`)
	for _, bad := range []string{"00000000-0000-0000-0000-000000000000", "x"} {
		status, _ = p.callAPI(http.MethodPost, "instances?requestId="+bad, instanceBody("node-2"))
		require.Equal(t, http.StatusBadRequest, status)
	}
	p.mustCall(http.MethodDelete, "instances/node-1", nil)
	p.clock.Advance(time.Minute)
	require.Equal(t, first["name"], p.mustCall(http.MethodPost, "instances?requestId="+aUUID,
		instanceBody("node-1"))["name"],
		"a repeat after the end")
	require.Equal(t, "gone", p.instanceStatus("node-1"))
	second := p.mustCall(http.MethodPost, "instances", instanceBody("node-1"))
	require.NotEqual(t, first["targetId"], second["targetId"], "names come twice, numbers do not")
	p.clock.Advance(2 * time.Hour)
	list := p.mustCall(http.MethodGet, "operations", nil)
	require.Nil(t, list["items"], "operations are forgotten")
}

func jsonOf(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(object){
		"name":         func(o object) { o["name"] = "Node" },
		"machine type": func(o object) { o["machineType"] = "zones/" + zone + "/machineTypes/tpu" },
		"other zone":   func(o object) { o["machineType"] = "zones/x/machineTypes/" + kind },
		"disks":        func(o object) { o["disks"] = nil },
		"network":      func(o object) { o["networkInterfaces"] = nil },
		"label":        func(o object) { o["labels"] = object{"owner": "Ä"} },
		"label key":    func(o object) { o["labels"] = object{"Owner": "a"} },
		"migration":    func(o object) { o["scheduling"] = object{} },
		"spot restart": func(o object) {
			o["scheduling"] = object{"provisioningModel": "SPOT", "onHostMaintenance": "TERMINATE"}
		},
		"action": func(o object) {
			o["scheduling"] = object{"onHostMaintenance": "TERMINATE", "instanceTerminationAction": "DELETE"}
		},
		"items": func(o object) { o["metadata"] = object{"items": []object{{"key": "a"}, {"key": "a"}}} },
	} {
		p := newProject(t)
		body := instanceBody("node-1")
		spoil(body)
		status, answer := p.callAPI(http.MethodPost, "instances", body)
		require.GreaterOrEqual(t, status, 400, "%s: %v", name, answer)
		require.Zero(t, p.Live())
	}
}

func TestStockOutsAreInsideTheOperation(t *testing.T) {
	t.Parallel()
	p := newProject(t, func(c *gcetest.Config) { c.FailAfter = 7 * time.Second })
	p.SetStock(kind, 1)
	p.mustCall(http.MethodPost, "instances", instanceBody("node-1"))
	op := p.mustCall(http.MethodPost, "instances", instanceBody("node-2"))
	require.Equal(t, "RUNNING", op["status"])
	require.Equal(t, "PROVISIONING", p.instanceStatus("node-2"), "it is shown, and vanishes")
	p.clock.Advance(7 * time.Second)
	require.Equal(t, "gone", p.instanceStatus("node-2"))
	name, _ := op["name"].(string)
	require.Contains(t, jsonOf(t, p.mustCall(http.MethodGet, "operations/"+name, nil)),
		"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
	require.Len(t, p.Bill(p.clock.Now()).Lines, 1)
}

func TestLists(t *testing.T) {
	t.Parallel()
	p := newProject(t, func(c *gcetest.Config) { c.PageSize = 2 })
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		p.mustCall(http.MethodPost, "instances", instanceBody(name))
	}
	p.AddForeign("europe-west4-b", "theirs", kind)
	for path, want := range map[string]int{
		"instances":                       5,
		"/aggregated/instances":           6,
		"instances?filter=labels.owner=a": 5,
		"instances?filter=" + url.QueryEscape(`labels.owner=a AND name!="b"`):            4,
		"instances?filter=" + url.QueryEscape("labels.owner:*"):                          5,
		"operations?filter=" + url.QueryEscape("targetLink:instances/c"):                 1,
		"operations?filter=" + url.QueryEscape("operationType=delete"):                   0,
		"/aggregated/instances?maxResults=1&filter=" + url.QueryEscape("labels.team:re"): 1,
	} {
		require.Equal(t, want, p.countRows(path), path)
	}
	for _, bad := range []string{"instances?filter=name", "instances?maxResults=501", "instances?pageToken=x"} {
		status, _ := p.callAPI(http.MethodGet, bad, nil)
		require.Equal(t, http.StatusBadRequest, status, bad)
	}
	p.SetListLag(time.Minute)
	require.Equal(t, 1, p.countRows("/aggregated/instances"), "the world a minute ago")
	require.Len(t, p.mustCall(http.MethodGet, "/zones", nil)["items"], 2)
}

// countRows reads all pages.
func (p project) countRows(path string) int {
	p.t.Helper()
	count, token := 0, ""
	for {
		u, err := url.Parse(path)
		require.NoError(p.t, err)
		query := u.Query()
		if token != "" {
			query.Set("pageToken", token)
		}
		u.RawQuery = query.Encode()
		page := p.mustCall(http.MethodGet, u.String(), nil)
		rows, _ := page["items"].([]any)
		count += len(rows)
		if scopes, aggregated := page["items"].(object); aggregated {
			for _, scope := range scopes {
				rows, _ := scope.(object)["instances"].([]any)
				count += len(rows)
			}
		}
		if token, _ = page["nextPageToken"].(string); token == "" {
			return count
		}
	}
}

func TestPartialSuccessIsAskedFor(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.mustCall(http.MethodPost, "instances", instanceBody("node-1"))
	fault := gcetest.Fault{Call: gcetest.AggregatedList, Effect: gcetest.Partial}
	p.Inject(fault, fault)
	status, _ := p.callAPI(http.MethodGet, "/aggregated/instances", nil)
	require.Equal(t, http.StatusServiceUnavailable, status)
	answer := p.mustCall(http.MethodGet, "/aggregated/instances?returnPartialSuccess=true", nil)
	require.Len(t, answer["unreachables"], 1)
	require.Equal(t, 1, p.countRows("/aggregated/instances"))
}

func TestPreemption(t *testing.T) {
	t.Parallel()
	for action, after := range map[string]string{"DELETE": "gone", "STOP": "TERMINATED"} {
		p := newProject(t)
		body := instanceBody("node-1")
		body["scheduling"].(object)["instanceTerminationAction"] = action
		p.mustCall(http.MethodPost, "instances", body)
		p.clock.Advance(time.Hour)
		p.Preempt(zone, "node-1")
		require.Equal(t, "STOPPING", p.instanceStatus("node-1"))
		require.Contains(t,
			jsonOf(t, p.mustCall(http.MethodGet, "instances/node-1/getGuestAttributes?queryPath=forewarm/notice", nil)),
			"forewarm")
		p.clock.Advance(30 * time.Second)
		require.Equal(t, after, p.instanceStatus("node-1"))
		require.Equal(t, 1, p.countRows("operations?filter=operationType=compute.instances.preempted"))
		require.Equal(t, time.Hour+30*time.Second, p.Bill(p.clock.Now().Add(time.Hour)).Lines[0].Billed)
	}
}

func TestDeadMan(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	body := instanceBody("node-1")
	items := body["metadata"].(object)["items"].([]object)
	expires := p.start.Add(10 * time.Minute)
	body["metadata"] = object{"items": append(items,
		object{"key": "forewarm-expires-at", "value": jsonOf(t, expires.Unix())})}
	p.mustCall(http.MethodPost, "instances", body)
	p.clock.Set(expires.Add(-time.Second))
	require.Equal(t, "RUNNING", p.instanceStatus("node-1"))
	p.SetBusy(zone, "node-1", true)
	p.clock.Set(expires.Add(time.Hour))
	require.Equal(t, "RUNNING", p.instanceStatus("node-1"))

	metadata, _ := p.mustCall(http.MethodGet, "instances/node-1", nil)["metadata"].(object)
	status, _ := p.callAPI(http.MethodPost, "instances/node-1/setMetadata", object{"fingerprint": "old"})
	require.Equal(t, http.StatusPreconditionFailed, status)
	metadata["items"] = append(metadata["items"].([]any)[:2],
		object{"key": "forewarm-expires-at", "value": jsonOf(t, expires.Add(2*time.Hour).Unix())})
	p.mustCall(http.MethodPost, "instances/node-1/setMetadata", metadata)
	p.SetBusy(zone, "node-1", false)
	require.Equal(t, "RUNNING", p.instanceStatus("node-1"))
	p.clock.Set(expires.Add(2 * time.Hour))
	require.Equal(t, "STOPPING", p.instanceStatus("node-1"))
	p.clock.Advance(5 * time.Second)
	require.Equal(t, "TERMINATED", p.instanceStatus("node-1"))
}

func TestBill(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.mustCall(http.MethodPost, "instances", instanceBody("short"))
	long := instanceBody("long")
	long["scheduling"] = object{"onHostMaintenance": "TERMINATE"}
	p.mustCall(http.MethodPost, "instances", long)
	p.clock.Advance(10 * time.Second)
	p.mustCall(http.MethodDelete, "instances/short", nil)
	p.clock.Advance(time.Hour - 10*time.Second)
	bill := p.Bill(p.clock.Now())
	require.Len(t, bill.Lines, 2)
	require.Equal(t, time.Minute, bill.Lines[0].Billed, "30 s are a minute")
	require.True(t, bill.Lines[0].Spot)
	require.Equal(t, money.MicroUSD(300_000), bill.Lines[0].Cost)
	require.Equal(t, 36*money.USD, bill.Lines[1].Cost)
	require.Equal(t, money.MicroUSD(36_300_000), bill.Total)
}

func TestOtherProjectsAndZones(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	for _, path := range []string{"/zones/mars-a" + instance, "/zones/mars-a/operations"} {
		status, _ := p.callAPI(http.MethodGet, path, nil)
		require.Equal(t, http.StatusNotFound, status)
	}
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/compute/v1/projects/other/zones",
		nil))
	require.Equal(t, http.StatusNotFound, answer.Code)
}

func TestThrottling(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.Throttle(1)
	status, answer := p.callAPI(http.MethodGet, "instances", nil)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, jsonOf(t, answer), "rateLimitExceeded")
	p.Throttle(100)
	p.Throttle(0)
	p.mustCall(http.MethodGet, "instances", nil)
	require.Equal(t, 2, p.Calls(gcetest.List))
}
