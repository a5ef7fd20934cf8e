package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/forewarm/forewarm/ledger"
)

// mostRecalled is the longest text that is compared with those that were proved, in
// bytes: no key is longer.
const mostRecalled = 128

// Recall returns who sends a request with a key that was proved within CacheFor: the
// whole text is compared, by a hash and in constant time. False says nothing against
// the key: ask Request.
func (a *Authenticator) Recall(r *http.Request) (ledger.Actor, bool) {
	text, ok := sentKey(r)
	if !ok || len(text) > mostRecalled {
		return ledger.Actor{}, false
	}
	proof, now := proofOf(text), a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[idIn(text)]
	if !ok || !found.proved || subtle.ConstantTimeCompare(found.proof[:], proof[:]) != 1 ||
		!now.Before(found.until) || now.Sub(found.used) >= touchEvery {
		return ledger.Actor{}, false
	}
	return found.holder(), true
}

// rememberProof keeps the hash of a key's text, whose secret was the one that found
// says. Others than the process's own memory never see it, and it is no way back to
// the secret, which has 256 bits.
func (a *Authenticator) rememberProof(id string, found *remembered, text string) {
	if len(text) > mostRecalled {
		return
	}
	proof := proofOf(text)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[id] == found { // what came since was not compared with the secret
		found.proved, found.proof = true, proof
	}
}

func proofOf(text string) [sha256.Size]byte {
	var buffer [mostRecalled]byte
	return sha256.Sum256(buffer[:copy(buffer[:], text)])
}

// idIn is the id in the text of a key, or anything if it is none.
func idIn(text string) string {
	_, rest, _ := strings.Cut(text, "_")
	_, rest, _ = strings.Cut(rest, "_")
	id, _, _ := strings.Cut(rest, "_")
	return id
}
