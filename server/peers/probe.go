package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
)

// Probe connects to a server as another one does, and asks nothing of it. Its error says
// for people why no server of this version with these peppers would reach it.
func Probe(ctx context.Context, to ledger.Peer, peppers []keys.Pepper, version string, now time.Time) error {
	security, err := secureConnections(peppers, version, now)
	if err != nil {
		return err
	}
	l, err := dialPeer(ctx, to, security, func(*link) {})
	if err != nil {
		return describeUnreached(to, err)
	}
	l.close()
	return nil
}

// describeUnreached says why a server was not reached, without the words of the layers.
func describeUnreached(to ledger.Peer, err error) error {
	dial, failed := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, errStranger):
		return fmt.Errorf("what answers at %s does not know the pepper: give all servers the same FOREWARM_PEPPER",
			to.Address)
	case errors.Is(err, errVersion), strings.Contains(err.Error(), "no application protocol"): // an alert without a type
		return fmt.Errorf("the server at %s is of another version: update either", to.Address)
	case failed && dial.Op == "dial":
		return fmt.Errorf("nothing answers at %s", to.Address)
	}
	return fmt.Errorf("the server that is to be at %s does not answer as it", to.Address)
}
