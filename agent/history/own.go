package history

import (
	"cmp"
	"regexp"
	"strings"
)

// Forewarm keeps GPUs warm with work of its own: jobs and pods that hold the place of what is to come. Taken for
// demand, each would make the agent ask for one more. They are known by what the provisioners give them, a job's or
// pod's name, a job's comment, a pod's labels, and by the user who submitted them, where the history says it: names and
// comments are anybody's to choose.

// DefaultOwnUser is as whom Forewarm submits to a cluster where Options do not say it: the user of its systemd units.
const DefaultOwnUser = "forewarm"

// mostShownUser is where squeue cuts a user's name short, unless it is asked for another width.
const mostShownUser = 20

// isOwnUser reports whether work of a user may be Forewarm's own. Where the user is not known, it may.
func (o Options) isOwnUser(user string) bool {
	own := cmp.Or(o.OwnUser, DefaultOwnUser)
	return user == "" || user == own || len(user) == mostShownUser && strings.HasPrefix(own, user)
}

// ownName matches the names of placeholders: a mark in hex, which squeue may cut short, and for some the time when
// they end or what a controller added.
var ownName = regexp.MustCompile(`^forewarm-[0-9a-f]{11,40}(?:-[a-z0-9]{0,14})?$`)

const (
	ownComment = "forewarm:"          // begins a placeholder's comment in Slurm
	ownLabel   = "forewarm.dev/role"  // is on all that Forewarm makes in Kubernetes, and on no work of others
	ownToken   = "forewarm.dev/token" // annotates the same
)

// ownWord matches what only lines about placeholders, or of the agent's own log, hold.
var ownWord = regexp.MustCompile(`\bforewarm-(?:[0-9a-f]{11,40}\b|agent\b)|` +
	`\bforewarm:[notpy]=|\bforewarm\.dev/(?:role|token)\b`)

// isOwn reports whether one of the texts that describe a job, such as its name, its comment or its labels, says that
// it is a placeholder of Forewarm.
func isOwn(texts ...string) bool {
	for _, text := range texts {
		text = strings.TrimSpace(text)
		name := text[strings.LastIndexByte(text, '/')+1:] // a pod's may follow its namespace
		if ownName.MatchString(name) || strings.HasPrefix(text, ownComment) ||
			strings.Contains(text, ownLabel) || strings.Contains(text, ownToken) {
			return true
		}
	}
	return false
}

// IsOwnLine reports whether a line of a log speaks of Forewarm's own placeholders, or is one that the agent wrote:
// what it says is no evidence of what people will want.
func IsOwnLine(text string) bool {
	return strings.Contains(text, "forewarm") && ownWord.MatchString(text)
}
