package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
	"github.com/forewarm/forewarm/server/telemetry"
)

// mostReport bounds a heartbeat, in bytes: 64 GPUs with all that can be said of them.
const mostReport = 256 << 10

func daemonEndpoints(a *API) []endpoint {
	op := func(id, method, path string, policy auth.Policy, summary string) operation.Operation {
		return operation.Operation{ID: id, Method: method, Path: "/nodes/{id}/" + path, Tag: "capacity", Policy: policy,
			MaxBody: mostReport, Summary: summary, ShowsSecret: method == http.MethodPost}
	}
	return []endpoint{
		serve(a, op("issueJoinToken", http.MethodPost, "join-token", auth.Operator,
			"Issue a token with which the daemon of a node joins once; it is shown once"), issueJoinToken),
		serve(a, op("joinNode", http.MethodPost, "join", auth.Joins,
			"Join as the daemon of a node, with a join token as the key; answers the daemon's own key"), joinNode),
		serve(a, op("renewNodeKey", http.MethodPost, "renew", auth.Nodes,
			"Renew the key of a node's daemon; the old one works on for two minutes"), renewNodeKey),
		serve(a, op("putHeartbeat", http.MethodPut, "heartbeat", auth.Nodes,
			"Report what a node's daemon saw of its GPUs"), putHeartbeat),
	}
}

// issueJoinToken takes no idempotency key: a repeat could only be answered from a
// stored secret.
func issueJoinToken(ctx context.Context, a *API, in *struct {
	ByID
	Body contract.JoinTokenCreate
},
) (*One[contract.JoinToken], error) {
	made, text, err := a.Minter.MintNode()
	if err != nil {
		return nil, err
	}
	d, err := a.Ledger.IssueJoinToken(ctx, auth.From(ctx), in.ID, made, seconds(in.Body.ExpiresInSeconds))
	if err != nil {
		return nil, err
	}
	return &One[contract.JoinToken]{Body: contract.JoinToken{NodeID: d.NodeID, Token: text.Reveal(),
		ExpiresAt: d.TokenExpires.UTC(), URL: a.PublicURL}}, nil
}

type nodeJoin struct {
	ByID
	Body contract.NodeJoin
}

func joinNode(ctx context.Context, a *API, in *nodeJoin) (*One[contract.NodeJoined], error) {
	return giveNodeKey(ctx, a, in, a.Ledger.JoinNode)
}

func renewNodeKey(ctx context.Context, a *API, in *nodeJoin) (*One[contract.NodeJoined], error) {
	return giveNodeKey(ctx, a, in, a.Ledger.RenewNodeKey)
}

// giveNodeKey makes a key that a verb gives to the daemon, and answers it.
func giveNodeKey(ctx context.Context, a *API, in *nodeJoin, give func(context.Context, ledger.Actor,
	ledger.Joining) (ledger.Daemon, error)) (*One[contract.NodeJoined], error) {
	actor := auth.From(ctx)
	made, text, err := a.Minter.MintNode()
	if err != nil {
		return nil, err
	}
	if _, err := give(ctx, actor, ledger.Joining{BootID: in.Body.BootID, Key: made}); err != nil {
		return nil, err
	}
	a.Auth.ForgetNode(actor.NodeID)
	return &One[contract.NodeJoined]{Body: contract.NodeJoined{NodeID: actor.NodeID, Key: text.Reveal(),
		ExpiresInSeconds: int64(ledger.NodeKeyLife / time.Second),
		HeartbeatSeconds: int64(telemetry.BeatEvery / time.Second)}}, nil
}

func putHeartbeat(ctx context.Context, a *API, in *struct {
	ByID
	Body contract.Heartbeat
},
) (*One[contract.HeartbeatAnswer], error) {
	if err := checkHeartbeat(in.Body); err != nil {
		return nil, err
	}
	actor := auth.From(ctx)
	taken, err := a.Telemetry.Beat(ctx, actor, in.Body)
	if err == nil && !taken.KeyEnds.IsZero() {
		a.Auth.KeepNode(actor.KeyID, taken.KeyEnds)
	}
	if err == nil && taken.Settle {
		err = a.settleNode(ctx, in.Body, &taken.Answer)
	}
	if errors.Is(err, ledger.ErrDenied) {
		a.Auth.ForgetNode(actor.NodeID)
	}
	if err != nil {
		return nil, err
	}
	return &One[contract.HeartbeatAnswer]{Body: taken.Answer}, nil
}

// mostWord bounds what stands in a list of a heartbeat, in bytes.
const mostWord = 64

// checkHeartbeat refuses what the description of a heartbeat cannot say is wrong.
func checkHeartbeat(b contract.Heartbeat) error {
	seen := map[string]bool{}
	for i, g := range b.Look.GPUs {
		if seen[g.UUID] {
			return problem.Invalid(fmt.Sprintf("look.gpus[%d].uuid", i), "must not stand in the look twice", "")
		}
		seen[g.UUID] = true
		if err := checkWords(fmt.Sprintf("look.gpus[%d].throttle", i), g.Throttle); err != nil {
			return err
		}
	}
	return checkWords("holds", b.Holds)
}

func checkWords(field string, all []string) error {
	for i, word := range all {
		if len(word) > mostWord {
			return problem.Invalid(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("must have at most %d bytes", mostWord), "")
		}
	}
	return nil
}

// refreshTelemetry has the hub read what daemons told other servers. That it cannot be
// read makes the answer poorer and no failure.
func (a *API) refreshTelemetry(ctx context.Context) {
	if err := a.Telemetry.Refresh(ctx); err != nil {
		a.Log.WarnContext(ctx, "an answer has old telemetry", "error", err)
	}
}

// encodeDaemon is what is known of a node's daemon.
func encodeDaemon(said telemetry.Said, state telemetry.State) *contract.NodeDaemon {
	return &contract.NodeDaemon{State: string(state), SeenAt: said.At.UTC(), Version: said.Program,
		Source: said.Look.Source, Problem: said.Look.Problem, Isolation: said.Look.Isolation,
		ExporterProblem: said.Look.ExporterProblem, Unbounded: said.Look.Unbounded, Containers: said.Look.Containers}
}

// findSaid is what was said of a device of a node.
func findSaid(said telemetry.Said, n node.Node, uuid string, index int) (contract.LookGPU, bool) {
	g, ok := said.GPU(uuid)
	if simulated := said.Look.Source == "simulated"; !ok && simulated && n.Simulated && index < len(said.Look.GPUs) {
		return said.Look.GPUs[index], true // each side makes up UUIDs of its own
	}
	return g, ok
}

// addSeen adds to a device what the daemon of its node says of it. What a silent one said
// last is shown with its time, and says nothing of the health.
func addSeen(out *contract.GPU, n node.Node, said telemetry.Said, state telemetry.State) {
	g, ok := findSaid(said, n, out.UUID, out.Index)
	if state == telemetry.None || !ok {
		return
	}
	out.Seen = &contract.GPUSeen{SeenAt: said.At.UTC(), Simulated: said.Look.Source == "simulated",
		GPUTelemetry: g.GPUTelemetry, Evidence: g.Evidence, BurnIn: g.BurnIn}
	if n.State() == node.Ready || n.State() == node.Draining {
		out.Health = "unknown"
		if state == telemetry.Online {
			out.Health = g.Health
		}
	}
}
