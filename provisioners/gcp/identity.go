//go:build clouds

package gcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// nameOf is the name of the only instance that a token may ever have.
func nameOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "fw-" + hex.EncodeToString(sum[:20])
}

// requests is the name space of request ids.
var requests = uuid.MustParse("6f0a3d0e-5a3c-4f0e-9d53-0d6b6a1c7f42")

// requestID names one try to make the token's machine. It covers what is asked
// for, so that an operation tells whether it was this token's spec; a try after
// a failure needs a new one, or Google answers the old failure again.
func requestID(token string, spec provisioners.Spec, try int) string {
	return uuid.NewSHA1(requests, fmt.Appendf(nil, "%q %q %q %q %q %d", token, spec.Type, spec.Region, spec.Owner,
		spec.NodeID, try)).String()
}

// ref is a machine's id: Google's number is never used twice, and zone and name
// are what its calls want.
type ref struct {
	zone, name string
	number     uint64
}

func (r ref) String() string {
	return r.zone + "/" + r.name + "/" + strconv.FormatUint(r.number, 10)
}

func parseRef(id string) (ref, bool) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 || !zonePattern.MatchString(parts[0]) || !namePattern.MatchString(parts[1]) {
		return ref{}, false
	}
	number, err := strconv.ParseUint(parts[2], 10, 64)
	return ref{zone: parts[0], name: parts[1], number: number}, err == nil && number > 0
}

func refOf(i *compute.Instance) ref {
	return ref{zone: lastSegment(i.Zone), name: i.Name, number: i.Id}
}

// lastSegment returns the last part of a resource's URL.
func lastSegment(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// tags are what a machine carries of its spec.
type tags struct{ token, owner, node, kind string }

// The keys of tags, as labels and as metadata. Labels can be asked for; metadata
// can hold any text.
const (
	tokenKey = "forewarm-token"
	ownerKey = "forewarm-owner"
	nodeKey  = "forewarm-node"
	typeKey  = "forewarm-type"
)

func (t tags) forEach(do func(key, value string)) {
	do(tokenKey, t.token)
	do(ownerKey, t.owner)
	do(nodeKey, t.node)
	do(typeKey, t.kind)
}

var labelPattern = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)

// hashed starts the label of a value that no label can hold.
const hashed = "h--"

// labelValue returns the value itself where a label can hold it, else its hash.
func labelValue(value string) string {
	if labelPattern.MatchString(value) && !strings.HasPrefix(value, hashed) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hashed + hex.EncodeToString(sum[:20])
}

// tagsOf reads a machine's tags: from its metadata, if its labels agree, else
// from labels that hold the value itself. False means that it has none, or none
// that can be believed.
func tagsOf(i *compute.Instance) (tags, bool) {
	var read tags
	for key, field := range map[string]*string{tokenKey: &read.token, ownerKey: &read.owner, nodeKey: &read.node,
		typeKey: &read.kind} {
		labelled := i.Labels[key]
		value, found := metadataValue(i, key)
		switch {
		case found && labelValue(value) == labelled:
			*field = value
		case !found && labelled != "" && !strings.HasPrefix(labelled, hashed):
			*field = labelled
		default:
			return tags{}, false
		}
	}
	return read, true
}

// metadataValue returns a metadata value.
func metadataValue(i *compute.Instance, key string) (string, bool) {
	if i.Metadata == nil {
		return "", false
	}
	for _, entry := range i.Metadata.Items {
		if entry.Key == key && entry.Value != nil {
			return *entry.Value, true
		}
	}
	return "", false
}
