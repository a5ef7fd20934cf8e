package cli

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// lookAtGPUs lets time pass, in which the daemons of all nodes that are ready report how busy
// their GPUs are. text is a duration and a percentage.
func (w *town) lookAtGPUs(text string) {
	w.t.Helper()
	span, percent, _ := strings.Cut(text, " ")
	d, err := time.ParseDuration(span)
	require.NoError(w.t, err)
	busy, err := strconv.Atoi(percent)
	require.NoError(w.t, err)
	for ; d > 0; d -= 30 * time.Second {
		w.passTime(30 * time.Second)
		for _, n := range w.readyNodes() {
			w.beat(n, busy, nil)
		}
	}
}

func (w *town) readyNodes() (all []node.Node) {
	w.t.Helper()
	require.NoError(w.t, w.ledger.Store().Read(w.t.Context(), func(r ledger.Reader) (err error) {
		all, err = r.Nodes(ledger.NodeFilter{State: []node.State{node.Ready}}, ledger.Page{Limit: 100})
		return err
	}))
	return all
}

// daemonOf is a client with the key of a node's daemon, which joins before its first request.
func (w *town) daemonOf(n node.Node) *client.Client {
	w.t.Helper()
	key, joined := w.daemons[n.ID]
	if !joined {
		token := w.mustRun("api", "POST", "/v1/nodes/"+n.ID+"/join-token", "-d", "{}", "--jq", ".token")
		api, err := client.New(w.url, token, http.DefaultClient)
		require.NoError(w.t, err)
		got, err := api.JoinNode(w.t.Context(), n.ID, contract.NodeJoin{BootID: "boot"})
		require.NoError(w.t, err)
		key = got.Key
		w.daemons[n.ID] = key
	}
	api, err := client.New(w.url, key, http.DefaultClient)
	require.NoError(w.t, err)
	return api
}

// beat is a report of a node's daemon, which knows of some jobs.
func (w *town) beat(n node.Node, busy int, jobs []contract.JobReport) contract.HeartbeatAnswer {
	w.t.Helper()
	w.beats++
	look := contract.NodeLook{Source: "nvml", GPUs: []contract.LookGPU{}}
	for _, d := range n.Devices {
		look.GPUs = append(look.GPUs, contract.LookGPU{UUID: d.UUID, Index: d.Index, Model: d.Model, Health: "healthy",
			GPUTelemetry: contract.GPUTelemetry{Utilization: &busy}})
	}
	answer, err := w.daemonOf(n).PutHeartbeat(w.t.Context(), n.ID, contract.Heartbeat{Version: "1.2.3", BootID: "boot",
		Epoch: 1, Seq: w.beats, SentAt: w.clock.Now().UTC(), Look: look, Jobs: jobs, Asked: true})
	require.NoError(w.t, err)
	return answer
}
