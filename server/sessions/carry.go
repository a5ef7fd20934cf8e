package sessions

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/forewarm/forewarm/contract/session"
)

// signOfLife is how often something goes to a user, so that nothing in between takes the
// connection for dead, and a user who has left while the command does not read what they sent
// is noticed. It is no ping: the answer would wait behind what the user sends.
const signOfLife = 5 * time.Second

// writeWithin is how long the last words to a user may take.
const writeWithin = 5 * time.Second

// Carry carries a session between its user and its node until either has ended it, or over
// says that it has to end, and returns how. The user is told how it ended, as judge makes it of what the node says, and
// the connection is closed.
func Carry(ctx context.Context, user *websocket.Conn, node Conn, over <-chan session.End,
	judge func(said session.End) session.End) session.End {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan session.End, 4)
	var both sync.WaitGroup
	silent := make(chan struct{}) // closed once nothing more comes from the user
	both.Go(func() {
		defer close(silent)
		carryToNode(ctx, user, node)
		ends <- userLeft
	})
	both.Go(func() { ends <- carryToUser(ctx, user, node, judge) })
	both.Go(func() {
		keepAlive(ctx, user)
		ends <- userLeft
	})
	var end session.End
	select {
	case end = <-ends:
		awaitWithin(silent, writeWithin) // their last word says that they know how it ended: a close would drop it
		closeUser(user)
	case end = <-over:
		if end.Code != session.NodeLost && end.Code != session.LeaseOver { // whose hold ends, which leaves it time
			hangUp(node)
		}
		Tell(ctx, user, end)
	}
	node.Close()
	cancel()
	_ = user.CloseNow()
	both.Wait()
	return end
}

// hangUp has a node hang up the command, whose holder may not come back to it. A node that does not read is left to
// the end of the hold.
func hangUp(node Conn) {
	sent := make(chan struct{})
	go func() { // it ends with the session
		defer close(sent)
		_ = node.Send(session.HangUp, nil)
	}()
	awaitWithin(sent, writeWithin)
}

func awaitWithin(done <-chan struct{}, within time.Duration) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

var userLeft = session.End{Code: session.UserLeft, Reason: "the user's connection ended"}

// carryToNode hands on what the user sends.
func carryToNode(ctx context.Context, user *websocket.Conn, node Conn) {
	for {
		kind, message, err := user.Read(ctx)
		if err != nil {
			return
		}
		c, data, err := session.ParseMessage(message)
		if err != nil || kind != websocket.MessageBinary {
			_ = user.Close(websocket.StatusUnsupportedData, "a message is a channel and its data, in binary")
			return
		}
		switch c {
		case session.Result, session.Begin, session.Resume, session.Stdout, session.Stderr:
			continue // none that a user sends now
		default:
		}
		if node.Send(c, data) != nil {
			<-ctx.Done() // its receiver knows why
			return
		}
	}
}

// carryToUser hands on what the node sends, to the session's end.
func carryToUser(ctx context.Context, user *websocket.Conn, node Conn,
	judge func(said session.End) session.End) session.End {
	buf := make([]byte, 0, session.MostData+1)
	for {
		c, data, err := node.Receive()
		if err != nil {
			end := session.End{Code: session.NodeLost, Reason: "the stream from the node broke"}
			Tell(ctx, user, end)
			return end
		}
		if len(data) > session.MostData {
			continue // none of a session
		}
		var end session.End
		if c == session.Result {
			end, data = readEnd(data, judge)
		}
		buf = session.AppendMessage(buf[:0], c, data)
		if err := user.Write(ctx, websocket.MessageBinary, buf); err != nil {
			return userLeft
		}
		if c == session.Result {
			return end
		}
	}
}

// readEnd reads how the node says that a session ended, and returns what it was, with what the user is told.
func readEnd(data []byte, judge func(said session.End) session.End) (session.End, []byte) {
	said, err := session.ParseEnd(data)
	if err != nil {
		return session.End{Code: session.NodeLost, Reason: "how it ended cannot be read"}, data
	}
	if end := judge(said); end != said {
		return end, end.Encode()
	}
	return said, data
}

// Tell tells a user how the session ended, and closes the connection.
func Tell(ctx context.Context, user *websocket.Conn, end session.End) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	if user.Write(ctx, websocket.MessageBinary, session.AppendMessage(nil, session.Result, end.Encode())) == nil {
		closeUser(user)
	}
}

// closeUser closes the connection in order: what was written reaches the user. The user's
// reader runs beside, and takes the answer.
func closeUser(user *websocket.Conn) { _ = user.Close(websocket.StatusNormalClosure, "") }

// keepAlive sends nothing in a message, now and then.
func keepAlive(ctx context.Context, user *websocket.Conn) {
	tick := time.NewTicker(signOfLife)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if user.Write(ctx, websocket.MessageBinary, session.AppendMessage(nil, session.Stdout, nil)) != nil {
			return
		}
	}
}
