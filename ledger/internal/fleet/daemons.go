package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// tellRefusal is how often a refused daemon is journalled at most.
const tellRefusal = time.Minute

// IssueJoinToken stores a token with which the daemon of a node may join once, within a
// life of at most ledger.MostTokenLife. A token that was issued before and not used is
// void. A daemon that has joined goes on until another joins.
func (l Fleet) IssueJoinToken(ctx context.Context, actor ledger.Actor, nodeID string, token ledger.NewSecret,
	life time.Duration) (ledger.Daemon, error) {
	var d ledger.Daemon
	if life <= 0 || life > ledger.MostTokenLife {
		return d, &ledger.InvalidError{Field: "expires_in_seconds",
			Rule: fmt.Sprintf("must be 1 to %d", int(ledger.MostTokenLife.Seconds()))}
	}
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		n, before, err := nodeForToken(tx, actor, nodeID)
		switch {
		case err != nil:
			return err
		case isOver(n):
			return &ledger.StateError{Subject: n.ID, State: string(n.State()), Asked: "have its daemon join"}
		}
		d = putToken(tx, n, before, token, life)
		tx.AddEvent(ledger.Event{Type: "node.join_token", Subject: n.ID, PoolID: n.PoolID,
			Message: "its daemon may join once until " + d.TokenExpires.UTC().Format(time.RFC3339)})
		return nil
	})
	return d, err
}

// ProvideJoinToken stores the join token that a machine gets when it is made. A repetition with
// the same token changes nothing but its end, and nothing at all once it was used.
func (l Fleet) ProvideJoinToken(ctx context.Context, actor ledger.Actor, nodeID string,
	token ledger.NewSecret) error {
	return l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		n, d, err := nodeForToken(tx, actor, nodeID)
		known := d.TokenID == token.ID
		if err != nil || isOver(n) || known && !d.TokenUsed.IsZero() {
			return err
		}
		putToken(tx, n, d, token, ledger.ProvidedTokenLife)
		if !known {
			tx.AddEvent(ledger.Event{Type: "node.join_token", Subject: n.ID, PoolID: n.PoolID,
				Message: "its machine is given a token with which its daemon may join once"})
		}
		return nil
	})
}

// nodeForToken reads a node, and what is known of its daemon, for an actor who gives it a token.
func nodeForToken(tx *txn.Tx, actor ledger.Actor, nodeID string) (n node.Node, d ledger.Daemon, err error) {
	if actor.Role != ledger.Operator {
		return n, d, ledger.ErrDenied
	}
	if n, err = tx.Port.Node(nodeID); err != nil {
		return n, d, fmt.Errorf("reading node: %w", err)
	}
	if d, err = tx.Port.Daemon(nodeID); err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return n, d, fmt.Errorf("reading daemon: %w", err)
	}
	return n, d, nil
}

// putToken has a token be the one with which a node's daemon may join.
func putToken(tx *txn.Tx, n node.Node, d ledger.Daemon, token ledger.NewSecret, life time.Duration) ledger.Daemon {
	d.NodeID, d.Generation = n.ID, n.Generation
	d.TokenID, d.TokenHash, d.TokenUsed = token.ID, token.Hash, time.Time{}
	d.TokenExpires = tx.Now().Add(life)
	tx.Change.Daemons = append(tx.Change.Daemons, d)
	return d
}

// isOver reports whether a node's daemon has nothing to say any more.
func isOver(n node.Node) bool { return node.Machine.Terminal(n.State()) }

// AuthenticateNode returns the credential of a token or key of a daemon. A key that may not
// be used now is ErrNotFound, and ErrRecovering while a pool waits for an operator's word: the daemon of a restored
// database may have a key that came after the backup, and must not end what runs there. A token is judged by JoinNode,
// which journals its refusal.
func (l Fleet) AuthenticateNode(ctx context.Context, id string) (ledger.NodeCredential, error) {
	var c ledger.NodeCredential
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		d, err := r.DaemonByKey(id)
		if err != nil {
			return refuseUnknown(r, err)
		}
		c = ledger.NodeCredential{Daemon: d, Kind: ledger.NodeKey, Hash: d.KeyHash, Expires: d.KeyExpires}
		switch id {
		case d.TokenID:
			c.Kind, c.Hash, c.Expires = ledger.JoinToken, d.TokenHash, time.Time{}
			return nil
		case d.OldKeyID:
			c.KeyID, c.Hash, c.Expires = d.OldKeyID, d.OldKeyHash, d.OldKeyUntil
		}
		n, err := r.BareNode(d.NodeID)
		if err == nil && (isOver(n) || n.Generation != d.Generation || !r.Now().Before(c.Expires)) {
			err = refuseUnknown(r, ledger.ErrNotFound)
		}
		return err
	})
	return c, err
}

// refuseUnknown is why a key that is not known, or not any more, is refused.
func refuseUnknown(r ledger.Reader, err error) error {
	if !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	recovers, failed := ledger.AnyRecovers(r)
	switch {
	case failed != nil:
		return failed
	case recovers:
		return fmt.Errorf("the key of a daemon is not known here: %w", ledger.ErrRecovering)
	}
	return err
}

// JoinNode burns a token and stores the key with which the daemon comes from now on, both
// or neither. Until the daemon has reported with its key, the same boot of its machine may
// join again, since the answer that brought the key may have been lost. The key before is
// then void. *ledger.DaemonRefusedError, which is journalled: the token was used before, has
// expired, or is of a node that is over.
func (l Fleet) JoinNode(ctx context.Context, actor ledger.Actor, j ledger.Joining) (ledger.Daemon, error) {
	var d ledger.Daemon
	var refused *ledger.DaemonRefusedError
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		refused = nil
		n, err := daemonOf(tx, actor, &d)
		if err != nil {
			return err
		}
		again, err := joinsAgain(tx, d, j.BootID)
		if err != nil {
			return err
		}
		reason := ""
		switch {
		case actor.Kind != ledger.JoinToken || actor.KeyID != d.TokenID:
			return ledger.ErrDenied
		case !d.TokenUsed.IsZero() && !again:
			reason = ledger.RefusedTokenUsed
		case !tx.Now().Before(d.TokenExpires):
			reason = ledger.RefusedTokenExpired
		case isOver(n) || n.Generation != d.Generation:
			reason = ledger.RefusedNodeOver
		}
		if reason != "" {
			refused = refuseDaemon(tx, n, d, reason)
			return nil
		}
		d.TokenUsed, d.JoinedAt, d.BootID = tx.Now(), tx.Now(), j.BootID
		d.KeyID, d.KeyHash, d.KeyExpires = j.Key.ID, j.Key.Hash, tx.Now().Add(ledger.NodeKeyLife)
		d.OldKeyID, d.OldKeyHash, d.OldKeyUntil = "", nil, time.Time{}
		tx.Change.Daemons = append(tx.Change.Daemons, d)
		message := "its daemon has joined"
		if again {
			message = "its daemon has joined again: it has not used the key that it was given before"
		}
		tx.AddEvent(ledger.Event{Type: "node.joined", Subject: n.ID, PoolID: n.PoolID, Message: message})
		return nil
	})
	return d, orRefused(err, refused)
}

// joinsAgain reports whether a daemon has joined in a boot of its machine, and nothing came
// from it since.
func joinsAgain(tx *txn.Tx, d ledger.Daemon, bootID string) (bool, error) {
	if d.TokenUsed.IsZero() || d.BootID != bootID {
		return false, nil
	}
	said, err := tx.Port.Presence(d.NodeID)
	if errors.Is(err, ledger.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading what the daemon said: %w", err)
	}
	return said.SeenAt.Before(d.JoinedAt), nil
}

// RenewNodeKey gives the daemon a new key. The one with which it came works on for
// ledger.OldKeyLife. The errors are those of RecordBeat.
func (l Fleet) RenewNodeKey(ctx context.Context, actor ledger.Actor, j ledger.Joining) (ledger.Daemon, error) {
	var d ledger.Daemon
	var refused *ledger.DaemonRefusedError
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		var err error
		var known ledger.DaemonState
		known, refused, err = believed(tx, actor, j.BootID)
		if d = known.Daemon; err != nil || refused != nil {
			return err
		}
		until := tx.Now().Add(ledger.OldKeyLife)
		if actor.KeyID == d.KeyID {
			d.OldKeyID, d.OldKeyHash, d.OldKeyUntil = d.KeyID, d.KeyHash, until
		} // else the answer that brought the current key was lost: it is replaced
		d.KeyID, d.KeyHash, d.KeyExpires = j.Key.ID, j.Key.Hash, tx.Now().Add(ledger.NodeKeyLife)
		tx.Change.Daemons = append(tx.Change.Daemons, d)
		return nil
	})
	return d, orRefused(err, refused)
}

// RecordBeat keeps what the daemon of a node says, and returns what is known of the daemon.
// *ledger.DaemonRefusedError, which is journalled: another daemon of the same machine began
// later, the machine booted since it joined, or the node is over.
func (l Fleet) RecordBeat(ctx context.Context, actor ledger.Actor, b ledger.Beat) (ledger.Daemon, error) {
	var d ledger.Daemon
	var refused *ledger.DaemonRefusedError
	heats, isolates, against := false, false, finding{}
	err := l.InGroup(ctx, actor, &ledger.LockHint{}, func(tx *txn.Tx) error {
		var known ledger.DaemonState
		var err error
		known, refused, err = believed(tx, actor, b.BootID)
		if d = known.Daemon; err != nil || refused != nil {
			return err
		}
		n, before := known.Node, known.Said
		isolates = b.Isolation.Valid() && b.Isolation != n.Isolation
		if against, err = findingAgainst(tx, known, b); err != nil {
			return err
		}
		if heats, err = heatMatters(tx, n, b.Celsius); err != nil {
			return err
		}
		if later, found := saidInTx(tx, n.ID); found {
			before = later
		}
		if before.BootID == b.BootID && before.Epoch > b.Epoch &&
			!before.SeenAt.Before(d.JoinedAt) { // what was said before it joined may have been forged
			refused = refuseDaemon(tx, n, d, ledger.RefusedSuperseded)
			return nil
		}
		open, err := recordActivity(tx, n, before, b)
		if err != nil {
			return err
		}
		replacePresence(tx, ledger.Presence{NodeID: d.NodeID, SeenAt: tx.Now(), BootID: b.BootID, Epoch: b.Epoch,
			Program: b.Program, Look: b.Look, Activity: open})
		if n.State() == node.Ready && tx.Now().Sub(before.SeenAt) > ledger.SilentAfter { // jobs may start there again
			tx.WakePlan(n.PoolID)
		}
		return nil
	})
	if err = orRefused(err, refused); err == nil && heats {
		err = noteHeat(ctx, l.Engine, d.NodeID, b.Celsius)
	}
	if err == nil && isolates {
		err = noteIsolation(ctx, l.Engine, d.NodeID, b.Isolation)
	}
	if err != nil || against.evidence == "" {
		return d, err
	}
	return d, quarantineFound(ctx, l.Engine, d.NodeID, against)
}

// lastPresence reads what the daemon of a node said before, in this transaction too; the zero
// value: nothing.
func lastPresence(tx *txn.Tx, nodeID string) (ledger.Presence, error) {
	if p, found := saidInTx(tx, nodeID); found {
		return p, nil
	}
	p, err := tx.Port.Presence(nodeID)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return p, fmt.Errorf("reading what the daemon said: %w", err)
	}
	return p, nil
}

// saidInTx is what the daemon of a node says in this transaction, if anything.
func saidInTx(tx *txn.Tx, nodeID string) (ledger.Presence, bool) {
	i := slices.IndexFunc(tx.Change.Presences, func(p ledger.Presence) bool { return p.NodeID == nodeID })
	if i < 0 {
		return ledger.Presence{}, false
	}
	return tx.Change.Presences[i], true
}

// replacePresence writes what a daemon says once, however often it is said in one
// transaction.
func replacePresence(tx *txn.Tx, p ledger.Presence) {
	all := slices.Clone(tx.Change.Presences)
	all = slices.DeleteFunc(all, func(x ledger.Presence) bool { return x.NodeID == p.NodeID })
	tx.Change.Presences = append(all, p)
}

// orRefused is the error of a verb that may have refused, and kept that.
func orRefused(err error, refused *ledger.DaemonRefusedError) error {
	if err == nil && refused != nil {
		return refused
	}
	return err
}

// daemonOf reads the actor's daemon into d, and its node, without its devices.
func daemonOf(tx *txn.Tx, actor ledger.Actor, d *ledger.Daemon) (n node.Node, err error) {
	if *d, err = tx.Port.Daemon(actor.NodeID); err == nil {
		n, err = tx.Port.BareNode(actor.NodeID)
	}
	if errors.Is(err, ledger.ErrNotFound) {
		err = ledger.ErrDenied
	}
	return n, err
}

// believed reads what is known of the daemon of a node's key, and refuses one that is not the node's any more.
func believed(tx *txn.Tx, actor ledger.Actor, bootID string) (
	ledger.DaemonState, *ledger.DaemonRefusedError, error) {
	known, err := tx.Port.DaemonState(actor.NodeID)
	n, d := known.Node, known.Daemon
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return known, nil, ledger.ErrDenied
	case err != nil:
		return known, nil, err
	case actor.Kind != ledger.NodeKey || actor.KeyID != d.KeyID && actor.KeyID != d.OldKeyID:
		return known, nil, ledger.ErrDenied
	case isOver(n) || n.Generation != d.Generation:
		return known, refuseDaemon(tx, n, d, ledger.RefusedNodeOver), nil
	case !known.IsKey(actor.KeyID, tx.Now()):
		return known, nil, ledger.ErrDenied
	case bootID != d.BootID:
		return known, refuseDaemon(tx, n, d, ledger.RefusedOtherBoot), nil
	}
	return known, nil, nil
}

// refuseDaemon journals, at most once a minute, that a daemon was not believed.
func refuseDaemon(tx *txn.Tx, n node.Node, d ledger.Daemon, reason string) *ledger.DaemonRefusedError {
	refused := &ledger.DaemonRefusedError{NodeID: n.ID, Reason: reason}
	told := !d.RefusedAt.IsZero() && tx.Now().Sub(d.RefusedAt) < tellRefusal ||
		slices.ContainsFunc(tx.Change.Daemons, func(x ledger.Daemon) bool { return x.NodeID == d.NodeID })
	if !told {
		d.RefusedAt = tx.Now()
		tx.Change.Daemons = append(tx.Change.Daemons, d)
		tx.AddEvent(ledger.Event{Type: "node.daemon_refused", Subject: n.ID, PoolID: n.PoolID, Reason: reason,
			Message: refused.Error()})
	}
	return refused
}

// quarantineFor takes a ready node out of use for a reason; others stay as they are.
func quarantineFor(tx *txn.Tx, p *txn.PoolTx, n node.Node, reason, evidence, told string) error {
	if n.State() != node.Ready {
		return nil
	}
	n, err := tx.StepNode(p, n, node.Quarantine, reason, evidence)
	if err != nil {
		return err
	}
	if isHeld(p, n) {
		n.Quarantine.Kept = true
		p.PutNode(n)
		vacateBooked(tx, p, n.Slot)
	}
	tellHolders(tx, p, n, reason, "node "+n.ID+" takes no new work: "+told)
	tx.WakePlan(p.Pool.ID)
	return nil
}

// clearDaemon has the daemon of a node, if there is one, forget what spoke against its
// GPUs: an operator takes the node back into use.
func clearDaemon(tx *txn.Tx, nodeID string) error {
	d, err := tx.Port.Daemon(nodeID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err == nil {
		d.Clears++
		tx.Change.Daemons = append(tx.Change.Daemons, d)
	}
	return err
}
