//go:build clouds

package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// The labels and annotations of our objects. Operators select by the labels; a
// pod that does the work carries labelNode too.
const (
	labelOwner = "forewarm.dev/owner"
	labelNode  = "forewarm.dev/node"
	labelType  = "forewarm.dev/type"
	labelRole  = "forewarm.dev/role"

	labelManager = "app.kubernetes.io/managed-by"
	manager      = "forewarm"

	rolePlaceholder = "placeholder"
	roleRecord      = "record"
	roleKeeping     = "keeping" // the record of an observer
	roleClaim       = "claim"
	roleBuffer      = "buffer"
	roleGuard       = "guard"

	noteToken   = "forewarm.dev/token"
	noteExpires = "forewarm.dev/expires-at" // seconds since 1970
	// noteRecord is the uid of the record of a placeholder that its guard owns.
	noteRecord = "forewarm.dev/record"
)

// key finds one machine: namespace and name of its two objects, and the uid of
// its record. A record that is made anew, for the same token, is another machine.
type key struct {
	namespace, name string
	uid             types.UID
}

// instanceID is the machine's id at the port.
func (k key) instanceID() string { return k.namespace + "/" + k.name + "/" + string(k.uid) }

// parseID is false for a text that this adapter has never given out.
func parseID(id string) (key, bool) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 || !strings.HasPrefix(parts[1], namePrefix) {
		return key{}, false
	}
	for _, part := range parts {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return key{}, false
		}
	}
	return key{parts[0], parts[1], types.UID(parts[2])}, true
}

const (
	namePrefix = "forewarm-"
	hashLength = 40 // of hexadecimal digits: 160 bits
)

// nameOf is the name of a token's objects. It is the same for every process, so
// that the API server refuses the second one.
func nameOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return namePrefix + hex.EncodeToString(sum[:])[:hashLength]
}
