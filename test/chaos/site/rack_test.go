package site

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// newTestRack is a rack whose daemons are programs that wait.
func newTestRack(t *testing.T) *Rack {
	t.Helper()
	r, err := newRack("seed", func(h *Host, joinToken string) error {
		require.Equal(t, "join", joinToken)
		h.dir = filepath.Join(t.TempDir(), h.ID)
		require.NoError(t, os.Mkdir(h.dir, 0o700))
		h.Daemon = newProgram(t, "exec sleep 1000")
		return h.Daemon.Start()
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.closeRack()) })
	return r
}

func (r *Rack) createFor(token string, at time.Time) answer {
	q := question{Verb: "create", Token: token, Spec: spec{Owner: "chaos", NodeID: "nod_" + token}}
	q.Spec.Daemon.JoinToken = "join"
	return r.answerTo(q, at)
}

func TestARackMakesOneMachineForAToken(t *testing.T) {
	t.Parallel()
	r := newTestRack(t)
	made := r.createFor("a", noon)["instance"].(instance)
	require.Equal(t, "booting", made.Phase)
	again := r.createFor("a", noon.Add(rackBoot))["instance"].(instance)
	require.Equal(t, "running", again.Phase)
	require.Equal(t, made.Devices, again.Devices)
	require.Len(t, made.Devices, GPUsPerNode)
	require.Len(t, r.Daemons(), 1)

	for i := 1; i < places; i++ {
		require.Contains(t, r.createFor(fmt.Sprint(i), noon), "instance")
	}
	require.Contains(t, r.createFor("more", noon), "error")
	listed := r.answerTo(question{Verb: "list", Owner: "chaos"}, noon)
	require.Len(t, listed["instances"], places)
	require.Equal(t, true, listed["complete"])
	require.Empty(t, r.answerTo(question{Verb: "list", Owner: "somebody else"}, noon)["instances"])
	require.Contains(t, r.answerTo(question{Verb: "get", ID: "m-9"}, noon), "error")
}

// A machine that ends takes along its daemon, and all that holders left on it.
func TestTheEndOfAMachineLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newTestRack(t)
	r.createFor("a", noon)
	h := r.Hosts()[0]
	left := filepath.Join(SharedFolders[0], Mark+h.uuids[0]+".alc_1")
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	work := exec.Command("sleep", "1000")
	work.Env = []string{"CUDA_VISIBLE_DEVICES=" + strings.Join(h.uuids, ",")}
	require.NoError(t, work.Start())
	ended := make(chan struct{})
	go func() { _ = work.Wait(); close(ended) }()

	hour := noon.Add(time.Hour)
	for range 2 { // the second time there is nothing to do
		require.Equal(t, answer{}, r.answerTo(question{Verb: "delete", ID: h.ID}, hour))
	}
	<-ended
	require.NoFileExists(t, left)
	require.NoDirExists(t, h.dir)
	require.Empty(t, r.Hosts())
	require.NoError(t, h.Daemon.Start())
	require.NoError(t, h.Daemon.Pause())
	require.Nil(t, h.Daemon.life, "a fault that is over starts no daemon of a machine that is not there")
	got := r.answerTo(question{Verb: "get", ID: h.ID}, hour)["instance"].(instance)
	require.Equal(t, "terminated", got.Phase)
	require.Equal(t, hour, *got.EndedAt)
	require.Equal(t, []Machine{{ID: h.ID, Node: "nod_a", From: noon, To: hour, Cost: money.MicroUSD(rackPrice)}},
		r.bill(hour.Add(time.Hour)))
}

func TestAScriptAsksTheRack(t *testing.T) {
	t.Parallel()
	r := newTestRack(t)
	var out bytes.Buffer
	in := `{"version":1,"verb":"create","token":"a","spec":{"type":"bare","region":"rack-1","owner":"chaos",` +
		`"node_id":"nod_a","daemon":{"url":"http://127.0.0.1:1","join_token":"join"}}}`
	require.NoError(t, AskRack(t.Context(), fmt.Sprintf("http://127.0.0.1:%d", r.Port), strings.NewReader(in), &out))
	var said struct {
		Instance instance `json:"instance"`
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &said))
	require.Equal(t, "nod_a", said.Instance.NodeID)
	require.Len(t, r.Daemons(), 1)
	require.Error(t, AskRack(t.Context(), fmt.Sprintf("http://127.0.0.1:%d", r.Port), strings.NewReader("?"), &out))
}

// echoing is a server that says its name to whoever connects.
func echoing(t *testing.T, name string) (address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", loopbackAddress(0))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(name))
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestABalancerGoesRoundAndPassesWhoIsAway(t *testing.T) {
	t.Parallel()
	b, err := newBalancer([]string{echoing(t, "one"), loopbackAddress(1), echoing(t, "two")})
	require.NoError(t, err)
	greeting := func() string {
		conn, err := net.Dial("tcp", loopbackAddress(b.Port))
		if err != nil {
			return ""
		}
		defer conn.Close()
		var said [3]byte
		n, _ := conn.Read(said[:])
		return string(said[:n])
	}
	require.Equal(t, []string{"one", "two", "one", "two"}, []string{greeting(), greeting(), greeting(), greeting()})
	require.NoError(t, b.closeAll())
	require.Empty(t, greeting())
}
