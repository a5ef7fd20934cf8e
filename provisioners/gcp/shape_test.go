//go:build clouds

package gcp_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/bootscript"
	"github.com/forewarm/forewarm/provisioners/gcp"
	"github.com/forewarm/forewarm/provisioners/gcp/gcetest"
	"github.com/forewarm/forewarm/provisioners/gcp/guest"
)

// callAPI speaks the protocol itself, as another user of the project would.
func (w *world) callAPI(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), method, w.server.URL+"/compute/v1/projects/acme-gpus/"+path,
		bytes.NewReader(text))
	require.NoError(t, err)
	response, err := w.server.Client().Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	var answer map[string]any
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer
}

func (w *world) instanceJSON(t *testing.T, id string) map[string]any {
	t.Helper()
	zone, name := splitID(id)
	return w.callAPI(t, http.MethodGet, "zones/"+zone+"/instances/"+name, nil)
}

func (w *world) metadataOf(t *testing.T, id string) map[string]string {
	t.Helper()
	items := map[string]string{}
	for _, item := range w.instanceJSON(t, id)["metadata"].(map[string]any)["items"].([]any) {
		pair := item.(map[string]any)
		items[pair["key"].(string)] = pair["value"].(string)
	}
	return items
}

func TestWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(f *gcetest.Config, c *gcp.Config) {
		f.Types["n1-standard-8"] = gcetest.Type{GPUs: 1, GPU: "Tesla T4", MemoryMiB: 15_360}
		c.Tags, c.ServiceAccount, c.Subnetwork = []string{"forewarm-node"}, "node@acme-gpus.iam.gserviceaccount.com",
			"gpu-nodes"
		c.Offers = append(c.Offers,
			gcp.Offer{Type: "t4", MachineType: "n1-standard-8", Zone: zone, AcceleratorType: "nvidia-tesla-t4",
				AcceleratorCount: 1, Model: "t4", GPUs: 1},
			gcp.Offer{Type: "march", MachineType: "a3-highgpu-8g", Zone: zone, Market: gcp.Reservation,
				Reservation: "march", ReservationBound: true, Model: "h100-80g", GPUs: 8})
	})
	ask := func(kind string) map[string]any {
		made, err := w.Create(t.Context(), "token of "+kind, testSpec(kind, zone))
		require.NoError(t, err)
		return w.instanceJSON(t, made.ID)
	}
	spot := ask("h100-8-spot")
	require.Equal(t, map[string]any{
		"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE", "automaticRestart": false,
		"onHostMaintenance": "TERMINATE",
	}, spot["scheduling"])
	require.Equal(t, map[string]any{"consumeReservationType": "NO_RESERVATION"}, spot["reservationAffinity"])
	require.Equal(t, map[string]any{"items": []any{"forewarm-node"}}, spot["tags"])
	require.Equal(t, "node@acme-gpus.iam.gserviceaccount.com",
		spot["serviceAccounts"].([]any)[0].(map[string]any)["email"])
	disk := spot["disks"].([]any)[0].(map[string]any)
	require.Equal(t, true, disk["autoDelete"])
	require.Equal(t, "200", disk["initializeParams"].(map[string]any)["diskSizeGb"])

	usual := ask("h100-8")
	require.Equal(t, "STANDARD", usual["scheduling"].(map[string]any)["provisioningModel"])
	require.NotContains(t, usual["scheduling"], "instanceTerminationAction")
	require.NotContains(t, usual, "guestAccelerators")

	attached := ask("t4")["guestAccelerators"].([]any)[0].(map[string]any)
	require.Equal(t, map[string]any{"acceleratorType": "zones/" + zone + "/acceleratorTypes/nvidia-tesla-t4",
		"acceleratorCount": 1.0}, attached)

	reserved := ask("march")
	require.Equal(t, "RESERVATION_BOUND", reserved["scheduling"].(map[string]any)["provisioningModel"])
	require.Equal(t, map[string]any{
		"consumeReservationType": "SPECIFIC_RESERVATION", "key": "compute.googleapis.com/reservation-name",
		"values": []any{"march"},
	}, reserved["reservationAffinity"])
}

func TestMachinesStartTheDaemonOfTheirNode(t *testing.T) {
	t.Parallel()
	for source, want := range map[bootscript.Source]string{"": "", bootscript.Download: "sum='5eed'",
		bootscript.Image: "from='image'"} {
		w := newWorld(t, func(_ *gcetest.Config, c *gcp.Config) { c.Daemon = source })
		require.Equal(t, want != "", w.Cloud.StartsDaemons())
		require.Equal(t, source == bootscript.Download, w.Cloud.DownloadsDaemons())
		spec := testSpec("h100-8", zone)
		spec.Daemon = provisioners.Daemon{URL: "https://forewarm.example", Token: "secret",
			Programs: provisioners.DaemonPrograms{AMD64: provisioners.DaemonProgram{
				URL: "https://forewarm.example/download/forewarm-node-linux-amd64", SHA256: "5eed"}}}
		first, err := w.Create(t.Context(), "token", spec)
		require.NoError(t, err)
		script := w.metadataOf(t, first.ID)[guest.DaemonKey]
		require.Equal(t, want != "", script != "")
		require.Contains(t, script, want)
		spec.Daemon.Programs.AMD64.SHA256 = "another"
		again, err := w.Create(t.Context(), "token", spec)
		require.NoError(t, err, "another version of the control plane asks for the same machine")
		require.Equal(t, first.ID, again.ID)

		spec.Daemon.Programs = provisioners.DaemonPrograms{}
		_, err = w.Create(t.Context(), "another token", spec)
		require.Equal(t, source != bootscript.Download, err == nil, "%v", err)
	}
}

// Tags that no label can hold come back whole, and find their machine.
func TestTagsOfAnyText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := "Ünit/1 (Frankfurt) h--"
	asked := provisioners.Spec{Type: "L4 small", Region: otherZone, Owner: owner, NodeID: "nod_UPPER"}
	made, err := w.Create(t.Context(), "Token 1", asked)
	require.NoError(t, err)
	w.config.StateFile = ""
	w.reopenCloud(t)
	list, err := w.List(t.Context(), owner)
	require.NoError(t, err)
	require.True(t, list.Complete)
	require.Equal(t, []provisioners.Instance{made}, list.Instances)
	require.Equal(t, "nod_UPPER", made.NodeID)

	w.cloud.SetLabel(otherZone, nameIn(made.ID), "forewarm-token", "another")
	list, err = w.List(t.Context(), owner)
	require.NoError(t, err)
	require.False(t, list.Complete, "a machine that cannot be told is not left out in silence")
	got := w.getInstance(t, made.ID)
	require.Equal(t, made.ID, got.ID, "its id is known all the same")
	_, err = w.Create(t.Context(), "Token 1", asked)
	require.NoError(t, err, "and so is its token")
}

// The console's "create similar" copies labels and metadata.
func TestCopyIsNotOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createInstance(t, "token-1")
	twin := w.instanceJSON(t, made.ID)
	twin["name"], twin["machineType"] = "their-copy", "zones/"+zone+"/machineTypes/a3-highgpu-8g"
	w.callAPI(t, http.MethodPost, "zones/"+zone+"/instances", twin)
	list, err := w.List(t.Context(), "deployment-a")
	require.NoError(t, err)
	require.True(t, list.Complete)
	require.Len(t, list.Instances, 1)
}

func TestNotices(t *testing.T) {
	t.Parallel()
	const gpus = `[{"index":0,"uuid":"GPU-a","name":"NVIDIA H100","memory_mib":81559,"ecc_uncorrected":3}]`
	for name, test := range map[string]struct {
		do   func(w *world, name string)
		want provisioners.Notice
	}{
		"preempted": {
			func(w *world, name string) { w.cloud.SetGuestAttribute(zone, name, "forewarm/notice", "1772442600") },
			provisioners.Notice{Kind: provisioners.NoticeInterruption, At: time.Unix(1_772_442_630, 0).UTC()},
		},
		"maintenance": {
			func(w *world, name string) {
				w.cloud.SetMaintenance(zone, name, map[string]any{
					"maintenanceStatus": "PENDING", "type": "UNSCHEDULED",
					"maintenanceReasons": []string{"FAILURE_GPU_XID"},
					"windowStartTime":    "2026-03-02T03:00:00-08:00",
				})
			},
			provisioners.Notice{Kind: provisioners.NoticeDegraded, At: time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC)},
		},
		"fewer GPUs, with errors": {
			func(w *world, name string) { w.cloud.SetGuestAttribute(zone, name, "forewarm/gpus", gpus) },
			provisioners.Notice{Kind: provisioners.NoticeDegraded},
		},
		"nonsense": {
			func(w *world, name string) { w.cloud.SetGuestAttribute(zone, name, "forewarm/gpus", "all fine") },
			provisioners.Notice{Kind: provisioners.NoticeDegraded},
		},
		"failed script": {
			func(w *world, name string) {
				w.cloud.SetGuestAttribute(zone, name, "forewarm/error", "it ended with 7")
			},
			provisioners.Notice{Kind: provisioners.NoticeDegraded},
		},
	} {
		w := newWorld(t)
		made := w.createInstance(t, "token-1")
		require.Nil(t, w.awaitRunning(t, made.ID).Notice)
		test.do(w, nameIn(made.ID))
		w.clock.Advance(10 * time.Second)
		got := w.getInstance(t, made.ID)
		require.NotNil(t, got.Notice, name)
		require.NotEmpty(t, got.Notice.Message, name)
		got.Notice.Message = ""
		require.Equal(t, test.want, *got.Notice, name)
		if name == "nonsense" {
			require.Equal(t, provisioners.Booting, got.Phase)
			require.Empty(t, got.Devices)
		}
	}
}

func TestReservationExpires(t *testing.T) {
	t.Parallel()
	until := start.Add(3 * time.Hour)
	w := newWorld(t, func(_ *gcetest.Config, c *gcp.Config) {
		o := &c.Offers[1]
		o.Market, o.Reservation, o.From, o.Until = gcp.Reservation, "march", start, until
	})
	offers, err := w.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, until, offers[1].Until)
	require.Equal(t, 30*time.Second, offers[0].Notice)
	require.True(t, offers[0].Interruptible)
	made := w.createInstance(t, "token-1")
	require.Nil(t, w.awaitRunning(t, made.ID).Notice)
	w.clock.Set(until.Add(-30 * time.Minute))
	got := w.getInstance(t, made.ID)
	require.Equal(t, provisioners.NoticeExpiring, got.Notice.Kind)
	require.Equal(t, until, got.Notice.At)
}

// Google allows ten queries of a machine's attributes a minute; a booting machine
// is looked at every two seconds, and lists come on top.
func TestAttributesAreNotAskedTooOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createInstance(t, "token-1")
	w.clock.Advance(30 * time.Second)
	before := w.cloud.Calls(gcetest.GuestAttributes)
	for range 60 {
		w.clock.Advance(time.Second)
		w.getInstance(t, made.ID)
		_, err := w.List(t.Context(), "deployment-a")
		require.NoError(t, err)
	}
	require.LessOrEqual(t, w.cloud.Calls(gcetest.GuestAttributes)-before, 7)
	w.awaitRunning(t, made.ID)
	w.cloud.Inject(gcetest.Fault{Call: gcetest.GuestAttributes, Effect: gcetest.Refuse,
		Status: http.StatusInternalServerError, Reason: "backendError"})
	w.clock.Advance(time.Minute)
	list, err := w.List(t.Context(), "deployment-a")
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, list.Instances[0].Phase, "a list asks nothing that is known")
	_, err = w.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
}

func TestWithoutAProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *gcetest.Config, c *gcp.Config) { c.Probe = gcp.NoProbe })
	made := w.createInstance(t, "token-1")
	w.clock.Advance(15 * time.Second)
	got := w.getInstance(t, made.ID)
	require.Equal(t, provisioners.Running, got.Phase)
	require.Len(t, got.Devices, 8)
	require.NotContains(t, w.metadataOf(t, made.ID), "enable-guest-attributes")
	require.Zero(t, w.cloud.Calls(gcetest.GuestAttributes))
	offers, err := w.Offers(t.Context())
	require.NoError(t, err)
	require.Zero(t, offers[0].Notice, "nobody would see it")
}
