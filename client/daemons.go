package client

import (
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// IssueJoinToken makes a token with which the daemon of a node joins once, within a life of
// at most 15 minutes; zero: that long. It voids one that was not used.
func (c *Client) IssueJoinToken(ctx context.Context, nodeID string, life time.Duration) (contract.JoinToken, error) {
	return callFor[contract.JoinToken](ctx, c, call{method: http.MethodPost, path: []string{"nodes", nodeID, "join-token"},
		body: contract.JoinTokenCreate{ExpiresInSeconds: int64(life / time.Second)}, unrepeatable: true})
}

// JoinNode turns a join token, which is the client's key, into a key of the node's daemon.
func (c *Client) JoinNode(ctx context.Context, nodeID string, in contract.NodeJoin) (contract.NodeJoined, error) {
	return callFor[contract.NodeJoined](ctx, c, call{method: http.MethodPost, path: []string{"nodes", nodeID, "join"},
		body: in, unrepeatable: true})
}

// RenewNodeKey replaces the key of a node's daemon, which is the client's.
func (c *Client) RenewNodeKey(ctx context.Context, nodeID string, in contract.NodeJoin) (contract.NodeJoined, error) {
	return callFor[contract.NodeJoined](ctx, c, call{method: http.MethodPost, path: []string{"nodes", nodeID, "renew"},
		body: in, unrepeatable: true})
}

// PutHeartbeat reports what a node's daemon saw, with the daemon's key.
func (c *Client) PutHeartbeat(ctx context.Context, nodeID string, in contract.Heartbeat) (contract.HeartbeatAnswer,
	error) {
	return callFor[contract.HeartbeatAnswer](ctx, c, call{method: http.MethodPut, path: []string{"nodes", nodeID,
		"heartbeat"}, body: in})
}
