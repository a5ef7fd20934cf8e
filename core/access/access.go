// Package access says how to get to the GPUs of a node: what its address means, the
// commands that lead there, and the environment in which work finds its own devices
// and its peers.
//
// An address is a URI: ssh://USER@HOST:PORT, slurm://NODE?job=ID,
// kubernetes://NAMESPACE/POD?container=C&node=NODE, local:/// for the machine of the
// server itself, or sim://NAME for a machine that is not there. A plain host name is
// that of an SSH server. What an address names is checked against narrow forms, since
// providers and scripts write addresses, and what they write becomes the arguments of
// commands on other people's machines.
package access

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is how a node is entered.
type Kind string

// The kinds of way in.
const (
	SSH        Kind = "ssh"
	Slurm      Kind = "slurm"
	Kubernetes Kind = "kubernetes"
	Local      Kind = "local" // the machine on which the server runs
	Simulated  Kind = "sim"   // there is no machine, and no way in
)

// Address is where a node is reached. The zero Address leads nowhere.
type Address struct {
	Kind Kind
	// Host is what other nodes reach it by: the host of ssh, Slurm's name of the node,
	// Kubernetes' name of it, or empty where that is not known.
	Host string
	Port int    // of ssh; 0: ssh's own default
	User string // of ssh; empty: ssh's own default
	Job  string // of slurm; empty: no job of ours runs there, and nothing can join it
	// Namespace, Pod and Container are those of kubernetes. Container may be empty.
	Namespace, Pod, Container string
}

// Parse reads an address. What it cannot read, or would not hand to a command, is an
// error that names it, quoted.
func Parse(text string) (Address, error) {
	scheme, rest, isURI := strings.Cut(text, "://")
	if !isURI {
		scheme, rest = string(SSH), plainHost(text)
	}
	read := readers(Kind(scheme))
	if len(text) > longest || read == nil {
		return Address{}, fmt.Errorf("address %.80q: want ssh://, slurm://, kubernetes://, local:/// or sim://", text)
	}
	a, ok := read(rest)
	if !ok {
		return Address{}, fmt.Errorf("address %q: is not one of kind %s", text, scheme)
	}
	a.Kind = Kind(scheme)
	return a, nil
}

// longest is more than the parts of any address need, in bytes.
const longest = 1024

// plainHost puts brackets around an IPv6 address that stands alone.
func plainHost(text string) string {
	if strings.Count(text, ":") > 1 && !strings.Contains(text, "[") {
		return "[" + text + "]"
	}
	return text
}

func readers(k Kind) func(string) (Address, bool) {
	switch k {
	case SSH:
		return readSSH
	case Slurm:
		return readSlurm
	case Kubernetes:
		return readKubernetes
	case Local:
		return func(rest string) (Address, bool) { return Address{}, rest == "" || rest == "/" }
	case Simulated:
		return func(rest string) (Address, bool) { return Address{Host: rest}, IsName(rest) }
	}
	return nil
}

func readSSH(rest string) (a Address, ok bool) {
	if user, host, found := strings.Cut(rest, "@"); found {
		if !IsName(user) {
			return a, false
		}
		a.User, rest = user, host
	}
	rest = strings.TrimSuffix(rest, "/")
	host, port, hasPort := strings.Cut(rest, ":")
	if bracketed, after, ipv6 := strings.Cut(rest, "]"); ipv6 {
		host, hasPort = strings.TrimPrefix(bracketed, "["), after != ""
		if port, ok = strings.CutPrefix(after, ":"); hasPort && !ok || !isIPv6(host) || rest[0] != '[' {
			return a, false
		}
	} else if !IsName(host) {
		return a, false
	}
	if a.Host = host; !hasPort {
		return a, true
	}
	a.Port, ok = parsePort(port)
	return a, ok
}

func parsePort(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && n > 0 && isDigits(text)
}

func readSlurm(rest string) (Address, bool) {
	host, query, hasQuery := strings.Cut(rest, "?")
	if !hasQuery {
		return Address{Host: host}, IsName(host)
	}
	job, ok := strings.CutPrefix(query, "job=")
	return Address{Host: host, Job: job}, ok && IsName(host) && isDigits(job) && len(job) <= 10
}

func readKubernetes(rest string) (a Address, ok bool) {
	path, query, hasQuery := strings.Cut(rest, "?")
	if a.Namespace, a.Pod, ok = strings.Cut(path, "/"); !ok || !IsName(a.Namespace) || !IsName(a.Pod) {
		return a, false
	}
	if !hasQuery {
		return a, true
	}
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		into := map[string]*string{"container": &a.Container, "node": &a.Host}[key]
		if into == nil || *into != "" || !IsName(value) {
			return a, false
		}
		*into = value
	}
	return a, true
}

// String is the address as Parse reads it.
func (a Address) String() string {
	switch a.Kind {
	case SSH:
		return "ssh://" + a.login() + a.portSuffix()
	case Slurm:
		if a.Job != "" {
			return "slurm://" + a.Host + "?job=" + a.Job
		}
		return "slurm://" + a.Host
	case Kubernetes:
		return "kubernetes://" + a.Namespace + "/" + a.Pod + a.podQuery()
	case Local:
		return "local:///"
	case Simulated:
		return "sim://" + a.Host
	}
	return ""
}

func (a Address) login() string {
	host := a.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if a.User == "" {
		return host
	}
	return a.User + "@" + host
}

func (a Address) portSuffix() string {
	if a.Port == 0 {
		return ""
	}
	return ":" + strconv.Itoa(a.Port)
}

func (a Address) podQuery() string {
	var all []string
	if a.Container != "" {
		all = append(all, "container="+a.Container)
	}
	if a.Host != "" {
		all = append(all, "node="+a.Host)
	}
	if len(all) == 0 {
		return ""
	}
	return "?" + strings.Join(all, "&")
}

// IsName accepts names of hosts, users, pods and the like: none that a command could
// take for an option, and nothing that a shell reads.
func IsName(text string) bool {
	if text == "" || len(text) > 253 || strings.ContainsRune("-.", rune(text[0])) {
		return false
	}
	return consistsOf(text, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '.' || c == '_' || c == '-' })
}

// isIPv6 accepts what can be an IPv6 address, with a zone or without.
func isIPv6(text string) bool {
	host, zone, hasZone := strings.Cut(text, "%")
	return strings.Contains(host, ":") && (!hasZone || IsName(zone)) && consistsOf(host, func(c byte) bool {
		return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == ':' || c == '.'
	})
}

func isDigits(text string) bool { return text != "" && consistsOf(text, isDigit) }
func isDigit(c byte) bool       { return c >= '0' && c <= '9' }
func isLetter(c byte) bool      { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func consistsOf(text string, ok func(byte) bool) bool {
	for i := range len(text) {
		if !ok(text[i]) {
			return false
		}
	}
	return true
}
