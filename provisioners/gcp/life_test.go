//go:build clouds

package gcp_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/gcp"
	"github.com/forewarm/forewarm/provisioners/gcp/gcetest"
)

func testSpec(kind, region string) provisioners.Spec {
	return provisioners.Spec{Type: kind, Region: region, Owner: "deployment-a", NodeID: "nod_1"}
}

func (w *world) createInstance(t *testing.T, token string) provisioners.Instance {
	t.Helper()
	made, err := w.Create(t.Context(), token, testSpec("h100-8", zone))
	require.NoError(t, err)
	return made
}

func (w *world) getInstance(t *testing.T, id string) provisioners.Instance {
	t.Helper()
	got, err := w.Get(t.Context(), id)
	require.NoError(t, err)
	return got
}

// awaitRunning lets the machine boot.
func (w *world) awaitRunning(t *testing.T, id string) provisioners.Instance {
	t.Helper()
	w.clock.Advance(5 * time.Minute)
	got := w.getInstance(t, id)
	require.Equal(t, provisioners.Running, got.Phase)
	return got
}

// A stock-out that shows only after Create has answered ends the machine, which
// cost nothing, and its token stays used.
func TestStockOutAfterTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(f *gcetest.Config, _ *gcp.Config) { f.FailAfter = 25 * time.Second })
	w.cloud.SetStock("a3-highgpu-8g", 0)
	made := w.createInstance(t, "token-1")
	require.Equal(t, provisioners.Booting, made.Phase)
	list, err := w.List(t.Context(), "deployment-a")
	require.NoError(t, err)
	require.Len(t, list.Instances, 1)

	w.clock.Advance(30 * time.Second)
	w.cloud.SetStock("a3-highgpu-8g", 5)
	for range 2 { // the second time without the machine's record
		got := w.getInstance(t, made.ID)
		require.Equal(t, provisioners.Terminated, got.Phase)
		require.Equal(t, made.CreatedAt, got.CreatedAt)
		require.Equal(t, made.CreatedAt, got.EndedAt, "what never was costs nothing")
		w.config.StateFile = ""
		w.reopenCloud(t)
	}
	require.Zero(t, w.cloud.Bill(w.clock.Now()).Total)
	require.NoError(t, w.Delete(t.Context(), made.ID))
	_, err = w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
	require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(err), "its operation is all that is left of it")
	require.Zero(t, w.cloud.Live())
}

// Google may forget a deleted machine's operations after an hour; its token is
// known for a day all the same, also to the next process.
func TestTokenOutlivesGooglesMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createInstance(t, "token-1")
	w.awaitRunning(t, made.ID)
	deleted := w.clock.Now()
	require.NoError(t, w.Delete(t.Context(), made.ID))
	w.clock.Advance(time.Minute)
	ended := deleted.Add(20 * time.Second)
	require.Equal(t, ended, w.getInstance(t, made.ID).EndedAt)
	w.clock.Advance(23 * time.Hour)
	w.reopenCloud(t)
	again := w.createInstance(t, "token-1")
	require.Equal(t, provisioners.Terminated, again.Phase)
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, ended, again.EndedAt)
	require.Equal(t, 1, w.cloud.Calls(gcetest.Insert))
}

// Without a record the operations alone end a late duplicate, and they know
// whether it asks for the same thing.
func TestOperationsKnowTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *gcetest.Config, c *gcp.Config) { c.StateFile = "" })
	made := w.createInstance(t, "token-1")
	require.NoError(t, w.Delete(t.Context(), made.ID))
	w.clock.Advance(30 * time.Minute)
	w.reopenCloud(t)
	require.Equal(t, made.ID, w.createInstance(t, "token-1").ID)
	w.reopenCloud(t)
	other := testSpec("h100-8", zone)
	other.NodeID = "nod_2"
	_, err := w.Create(t.Context(), "token-1", other)
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
	require.Equal(t, 1, w.cloud.Calls(gcetest.Insert))
}

// Processes that share nothing but the project make one machine for a token.
func TestManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const processes = 8
	ids := make([]string, processes)
	errs := make([]error, processes)
	var group sync.WaitGroup
	for i := range processes {
		config := w.config
		config.StateFile = ""
		process, err := gcp.New(config, w.clock)
		require.NoError(t, err)
		group.Go(func() {
			made, err := process.Create(t.Context(), "token-1", testSpec("h100-8", zone))
			ids[i], errs[i] = made.ID, err
		})
	}
	group.Wait()
	for i := range processes {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], ids[i])
	}
	require.Equal(t, 1, w.cloud.Live())
}

// A failure inside the operation that another try may mend needs another
// requestId: Google answers the old operation to the old one.
func TestSecondTryIsATry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.cloud.Inject(gcetest.Fault{Call: gcetest.Insert, Effect: gcetest.Fail, Reason: "INTERNAL_ERROR"})
		_, err := w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
		require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
		w.clock.Advance(time.Second)
	}
	w.createInstance(t, "token-1")
	require.Equal(t, 1, w.cloud.Live())
}

// An insert whose answer was lost and that is then deleted by a sweep stays
// ended, although this process never answered it.
func TestLostAndSwept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cloud.Inject(gcetest.Fault{Call: gcetest.Insert, Effect: gcetest.Break})
	_, err := w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err))
	list, err := w.List(t.Context(), "deployment-a")
	require.NoError(t, err)
	require.Len(t, list.Instances, 1)
	require.NoError(t, w.Delete(t.Context(), list.Instances[0].ID))
	w.clock.Advance(time.Hour)
	again := w.createInstance(t, "token-1")
	require.Equal(t, provisioners.Terminated, again.Phase)
	require.Equal(t, list.Instances[0].ID, again.ID)
}

// What the port says of times adds up to Google's bill, whatever happens in
// whatever order.
func TestBill(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		w := newWorld(t)
		chance := rand.New(rand.NewPCG(seed, 7))
		prices := map[string]money.MicroUSD{}
		offers, err := w.Offers(t.Context())
		require.NoError(t, err)
		for _, offer := range offers {
			prices[offer.Type] = offer.Price
		}
		made := map[string]string{}
		for n := range 12 {
			offer := offers[chance.IntN(len(offers))]
			i, err := w.Create(t.Context(), fmt.Sprint("token-", n), testSpec(offer.Type, offer.Region))
			require.NoError(t, err)
			made[i.ID] = offer.Type
			w.clock.Advance(time.Duration(chance.IntN(300)) * time.Second)
			for id := range made {
				w.injectEvent(t, chance.IntN(12), id)
				w.getInstance(t, id) // Google tells an hour later, not much more
			}
		}
		w.clock.Advance(10 * time.Minute)
		var total money.MicroUSD
		for id, kind := range made {
			require.NoError(t, w.Delete(t.Context(), id))
			w.clock.Advance(time.Minute)
			got := w.getInstance(t, id)
			require.Equal(t, provisioners.Terminated, got.Phase)
			require.False(t, got.EndedAt.IsZero(), "seed %d: %+v", seed, got)
			total += prices[kind].For(max(got.EndedAt.Sub(got.CreatedAt), time.Minute))
		}
		require.Equal(t, w.cloud.Bill(w.clock.Now()).Total, total, "seed %d", seed)
	}
}

func (w *world) injectEvent(t *testing.T, what int, id string) {
	switch what {
	case 0:
		require.NoError(t, w.Delete(t.Context(), id))
	case 1:
		w.cloud.Preempt(splitID(id))
	}
}

// A machine that powered itself off is billed for its disk until it is deleted.
func TestStoppedMachineIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := testSpec("h100-8", zone)
	asked.ExpiresAt = start.Add(time.Hour)
	made, err := w.Create(t.Context(), "token-1", asked)
	require.NoError(t, err)
	w.awaitRunning(t, made.ID)
	w.clock.Set(start.Add(2 * time.Hour))
	got := w.getInstance(t, made.ID)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.Equal(t, start.Add(time.Hour+5*time.Second), got.EndedAt)
	require.NoError(t, w.Delete(t.Context(), made.ID))
	require.NoError(t, w.Delete(t.Context(), made.ID), "it is on its way out")
	require.Equal(t, 2, w.cloud.Calls(gcetest.Delete))
	w.clock.Advance(time.Minute)
	require.Equal(t, got.EndedAt, w.getInstance(t, made.ID).EndedAt, "its end does not move")
}

func TestDeadMan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := testSpec("h100-8", zone)
	asked.ExpiresAt = start.Add(time.Hour)
	made, err := w.Create(t.Context(), "token-1", asked)
	require.NoError(t, err)
	w.cloud.SetBusy(zone, nameIn(made.ID), true)
	w.clock.Set(start.Add(2 * time.Hour))
	require.Equal(t, provisioners.Running, w.getInstance(t, made.ID).Phase, "work is not cut short")

	race := gcetest.Fault{Call: gcetest.SetMetadata, Effect: gcetest.Race}
	w.cloud.Inject(race, race)
	require.NoError(t, w.Renew(t.Context(), made.ID, start.Add(3*time.Hour)), "others may change metadata too")
	w.cloud.Inject(race, race, race)
	require.Equal(t, provisioners.KindTransient,
		provisioners.KindOf(w.Renew(t.Context(), made.ID, start.Add(4*time.Hour))))
	w.cloud.SetBusy(zone, nameIn(made.ID), false)
	unlimited := w.createInstance(t, "token-2")
	calls := w.cloud.Calls(gcetest.SetMetadata)
	require.NoError(t, w.Renew(t.Context(), unlimited.ID, start.Add(3*time.Hour)))
	require.Equal(t, calls, w.cloud.Calls(gcetest.SetMetadata), "a machine without an end keeps none")
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(w.Renew(t.Context(), "x", start)))
}

func nameIn(id string) string {
	_, name := splitID(id)
	return name
}

// A wrong project or a lost right is not a machine's end.
func TestAbsenceNeedsProof(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createInstance(t, "token-1")
	w.config.Project, w.config.StateFile = "another-one", ""
	w.reopenCloud(t)
	_, err := w.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err), "%v", err)
	w.config.Project = "acme-gpus"
	w.reopenCloud(t)
	w.cloud.Inject(gcetest.Fault{Call: gcetest.Get, Effect: gcetest.Refuse, Status: http.StatusForbidden,
		Reason: "forbidden"})
	_, err = w.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindDenied, provisioners.KindOf(err))
}
