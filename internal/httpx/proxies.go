package httpx

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are addresses that are believed when they say for whom they ask. The
// zero value believes nobody.
type Proxies struct{ networks []netip.Prefix }

// ParseProxies reads networks, such as 10.0.0.0/8, and single addresses.
func ParseProxies(list []string) (Proxies, error) {
	var p Proxies
	for _, text := range list {
		text = strings.TrimSpace(text)
		if addr, err := netip.ParseAddr(text); err == nil {
			addr = addr.Unmap()
			p.networks = append(p.networks, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return Proxies{}, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", text)
		}
		p.networks = append(p.networks, network.Masked())
	}
	return p, nil
}

// Trust reports whether the address is one of a proxy.
func (p Proxies) Trust(addr netip.Addr) bool {
	for _, network := range p.networks {
		if network.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// Brought reports whether the request comes from a proxy.
func (p Proxies) Brought(r *http.Request) bool { return len(p.networks) > 0 && p.Trust(Peer(r)) }

// Peer returns the address at the other end of the request's connection; the
// zero Addr when there is none.
func Peer(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap().WithZone("")
}

// Client returns the address that a request comes from: the nearest one that is
// no proxy of ours, going back from the connection through X-Forwarded-For or
// Forwarded. A client can put anything into the header that its proxy does not
// write; where the two disagree, the proxy itself is the answer.
func (p Proxies) Client(r *http.Request) netip.Addr {
	peer := Peer(r)
	if !p.Trust(peer) {
		return peer
	}
	plain, standard := r.Header.Values("X-Forwarded-For"), r.Header.Values("Forwarded")
	switch {
	case len(standard) == 0:
		return p.walkHops(peer, strings.Split(strings.Join(plain, ","), ","))
	case len(plain) == 0:
		return p.walkHops(peer, parseForwarded(standard, "for"))
	}
	a, b := p.walkHops(peer, strings.Split(strings.Join(plain, ","), ",")),
		p.walkHops(peer, parseForwarded(standard, "for"))
	if a != b {
		return peer
	}
	return a
}

// Secure reports whether the client spoke TLS, to us or to a proxy of ours.
func (p Proxies) Secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	if !p.Brought(r) {
		return false
	}
	last := func(list []string) bool {
		return len(list) > 0 && strings.EqualFold(strings.TrimSpace(list[len(list)-1]), "https")
	}
	return last(strings.Split(strings.Join(r.Header.Values("X-Forwarded-Proto"), ","), ",")) ||
		last(parseForwarded(r.Header.Values("Forwarded"), "proto"))
}

// walkHops goes back from a trusted address over the hops, the last one first, and
// stops at the first that is not trusted or cannot be read.
func (p Proxies) walkHops(at netip.Addr, hops []string) netip.Addr {
	for i := len(hops) - 1; i >= 0 && p.Trust(at); i-- {
		next, ok := parseHop(hops[i])
		if !ok {
			return at
		}
		at = next
	}
	return at
}

// parseHop reads 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1] and
// [2001:db8::1]:80.
func parseHop(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return addr.Unmap().WithZone(""), err == nil
}

// parseForwarded lists what each element of Forwarded (RFC 7239) says of a name, in
// order; an element that says nothing of it counts as an empty text.
func parseForwarded(values []string, name string) []string {
	var found []string
	for _, element := range splitUnquoted(strings.Join(values, ","), ',') {
		value := ""
		for _, pair := range splitUnquoted(element, ';') {
			if key, v, _ := strings.Cut(pair, "="); strings.EqualFold(strings.TrimSpace(key), name) {
				value = strings.Trim(strings.TrimSpace(v), `"`)
			}
		}
		found = append(found, value)
	}
	return found
}

// splitUnquoted splits at a separator that is outside of quotes.
func splitUnquoted(text string, separator byte) []string {
	var parts []string
	quoted, from := false, 0
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == separator && !quoted:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

// Network is what one client can take addresses from at will: an IPv4 address,
// or the /64 of an IPv6 one.
func Network(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	network, _ := addr.Prefix(bits) // the zero Addr gives the zero Prefix
	return network
}
