// Package httpx holds the limits of every HTTP exchange, in both directions:
// how long a peer may take, how much it may send, and where we may be sent.
//
// Nothing here starts a goroutine or repeats a request. Whether and when to try
// again is the caller's decision, for which Backoff computes the pause.
package httpx
