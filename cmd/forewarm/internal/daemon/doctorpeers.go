package daemon

import (
	"context"
	"net"
	"strings"

	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/peers"
)

// maxProbed bounds how many servers are connected to, each for up to two seconds.
const maxProbed = 16

// examinePeers sees whether servers reach each other, as far as this machine can tell:
// without a link, each decides alone, and a session is only served where its node's daemon
// is attached.
func (d *doctor) examinePeers(ctx context.Context, a *app) {
	if d.cfg.isEmbedded() {
		d.add("servers", verdictSkipped, "forewarm up is the only one")
		return
	}
	var all []ledger.Peer
	err := a.store.Read(ctx, func(r ledger.Reader) (err error) {
		all, err = r.Servers()
		return err
	})
	if err != nil {
		d.add("servers", verdictFailed, "%v", err)
		return
	}
	switch off := d.cfg.Server.PeersListen == peersOff; {
	case off && len(all) > 0:
		d.add("servers", verdictWarning, "server.peers_listen is off here, and %s there: a session that is asked of this "+
			"server fails if its node is attached to another; remove the setting, or give it an address of this machine, "+
			"such as 10.0.0.5:8788", phrase.Count(len(all), "other server")+isOrAre(len(all)))
	case off:
		d.add("servers", verdictOK, "server.peers_listen is off: a server here stays alone")
	case len(all) == 0:
		d.add("servers", verdictWarning, "none is there that others can reach: start forewarm server")
	case len(all) == 1:
		d.add("servers", verdictOK, "one is there, at %s", all[0].Address)
	default:
		d.probePeers(ctx, a, all)
	}
}

func isOrAre(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

func (d *doctor) probePeers(ctx context.Context, a *app, all []ledger.Peer) {
	doubts := 0
	for _, to := range all[:min(len(all), maxProbed)] {
		err := peers.Probe(ctx, to, []keys.Pepper{a.pepper}, a.version, a.clock.Now())
		if err == nil {
			continue
		}
		doubts++
		d.add("servers", verdictWarning, "%v", withFix(err, to.Address))
	}
	if doubts == 0 {
		d.add("servers", verdictOK, "%s are there, and each answers this machine", phrase.Count(len(all), "server"))
	}
}

// withFix adds what makes a server reachable, where its address is what is wrong.
func withFix(err error, address string) string {
	text := err.Error()
	if strings.Contains(text, ": ") { // it names the fix
		return text
	}
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		text += " (only its own machine reaches that address)"
	}
	return text + ": on that server's machine, set server.peers_listen to an address that the other servers reach, " +
		"such as 10.0.0.5:8788 (or server.peers_address, where it differs), and let firewalls through"
}
