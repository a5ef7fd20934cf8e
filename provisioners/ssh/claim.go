package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// tokenHash names a token where it becomes part of a path.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:16])
}

// claimID is host.token.nonce: the machine can be asked from the id alone, and a
// machine that is claimed again, even for the same token after it is forgotten,
// has another one.
func claimID(host, token string, at time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", host, token, at.UnixNano()))
	return host + "." + tokenHash(token) + "." + hex.EncodeToString(sum[:6])
}

var idPattern = regexp.MustCompile(`^([a-z0-9-]+)\.[0-9a-f]{32}\.[0-9a-f]{12}$`)

// hostOf finds the host that an id names among those that are in service.
func (f *Fleet) hostOf(id string) (Host, bool) {
	match := idPattern.FindStringSubmatch(id)
	for _, h := range f.hosts {
		if match != nil && h.Name == match[1] {
			return h, true
		}
	}
	return Host{}, false
}

func newClaim(h Host, token string, spec provisioners.Spec, at time.Time) (id, text string) {
	c := claim{
		Version: claimVersion, ID: claimID(h.Name, token, at), Token: token,
		Type: spec.Type, Region: spec.Region, Owner: spec.Owner, Node: spec.NodeID, CreatedAt: at,
	}
	encoded, err := json.Marshal(c)
	if err != nil { // it has no field that cannot be written
		panic(err)
	}
	return c.ID, string(encoded)
}

func (c claim) portSpec() provisioners.Spec {
	return provisioners.Spec{Type: c.Type, Region: c.Region, Owner: c.Owner, NodeID: c.Node}
}

// portInstance is the claim as the port sees it. Without a probe in the report, a
// machine that runs has the devices that it was claimed with.
func (r report) portInstance(h Host) provisioners.Instance {
	i := provisioners.Instance{
		ID: r.claim.ID, Token: r.claim.Token, Owner: r.claim.Owner, NodeID: r.claim.Node, Type: r.claim.Type,
		CreatedAt: r.claim.CreatedAt,
	}
	switch {
	case r.phase == "gone":
		i.Phase, i.EndedAt = provisioners.Terminated, r.ended
	case r.phase == "ending":
		i.Phase = provisioners.Terminating
		if r.wipe.hasFailed() {
			i.Notice = degradedNotice("the wipe failed (%s), and the machine stays taken until a repeated delete "+
				"succeeds: %s", r.wipe, r.lastLogOf("wipe"))
		}
	case r.boot == succeeded:
		i.Phase, i.Address = provisioners.Running, h.wayIn().String()
		devices, fault := r.judgeDevices(h)
		if i.Devices = devices; fault != "" {
			i.Notice = degradedNotice("%s", fault)
		}
	default:
		i.Phase = provisioners.Booting
		if r.boot.hasFailed() {
			i.Notice = degradedNotice("the setup failed (%s): %s", r.boot, r.lastLogOf("boot"))
		}
	}
	return i
}

func degradedNotice(format string, args ...any) *provisioners.Notice {
	return &provisioners.Notice{Kind: provisioners.NoticeDegraded, Message: fmt.Sprintf(format, args...)}
}

// lastLogOf is the end of a detached process's log.
func (r report) lastLogOf(kind string) string {
	var lines []string
	for _, line := range r.log {
		if rest, of := strings.CutPrefix(line, kind+": "); of {
			lines = append(lines, rest)
		}
	}
	return strings.Join(lines, " / ")
}
