package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/httpx"
)

// The machines of the rack.
const (
	rackType   = "bare"
	sharedType = "shared"
	rackRegion = "rack-1"
	rackPrice  = 700_013 // of an hour, in millionths of a dollar
	RackSlots  = 4       // of the pool whose machines have one holder for each GPU
	// SharedSlots are of the pool whose GPUs have SharesPerGPU holders each, of which it keeps SharedKept.
	SharedSlots  = 2
	SharedKept   = 1
	SharesPerGPU = 2
	places       = RackSlots + SharedSlots
	// RackKept is how many machines the pool keeps, so that their GPUs go from hand to hand.
	RackKept = 3
	rackBoot = time.Second
)

// Rack is a provider of machines that run the node daemon. It answers the scripts of the
// provisioner exec. A machine of it is a folder, a daemon, and what holders leave behind. It
// runs in this process, where nothing breaks it.
type Rack struct {
	Port   int
	server *http.Server
	seed   string // of the machines' GPUs
	start  func(h *Host, joinToken string) error

	mu    sync.Mutex
	hosts []*Host // that ever were, in the order of their birth
}

// question and answer are the documents of the scripts (docs/provisioners/exec.md).
type question struct {
	Verb  string `json:"verb"`
	Token string `json:"token"`
	ID    string `json:"id"`
	Owner string `json:"owner"`
	Spec  spec   `json:"spec"`
}

type spec struct {
	Type   string `json:"type"`
	Owner  string `json:"owner"`
	NodeID string `json:"node_id"`
	Daemon struct {
		JoinToken string `json:"join_token"`
	} `json:"daemon"`
}

type answer map[string]any

func refuse(kind, message string) answer {
	return answer{"error": map[string]string{"kind": kind, "message": message}}
}

// newRack returns a rack that has start bring up its machines. No two machines have a GPU of
// one UUID, nor have those of racks with another seed.
func newRack(seed string, start func(h *Host, joinToken string) error) (*Rack, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", loopbackAddress(0))
	if err != nil {
		return nil, fmt.Errorf("opening the rack: %w", err)
	}
	r := &Rack{Port: l.Addr().(*net.TCPAddr).Port, seed: seed, start: start}
	r.server = httpx.NewServer("", r)
	go func() { _ = r.server.Serve(l) }() // it ends when the rack is closed
	return r, nil
}

// ServeHTTP answers a script.
func (r *Rack) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var q question
	if err := json.NewDecoder(req.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(r.answerTo(q, time.Now())) // who asked may have gone
}

func (r *Rack) answerTo(q question, now time.Time) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch q.Verb {
	case "create":
		return r.create(q, now)
	case "list":
		all := []instance{}
		for _, h := range r.hosts {
			if h.owner == q.Owner {
				all = append(all, h.describe(now))
			}
		}
		return answer{"instances": all, "complete": true}
	}
	i := slices.IndexFunc(r.hosts, func(h *Host) bool { return h.ID == q.ID })
	switch {
	case i < 0:
		return refuse("not_found", "no machine "+q.ID)
	case q.Verb == "get":
		return answer{"instance": r.hosts[i].describe(now)}
	case q.Verb != "delete":
		return refuse("bad_spec", "the verb "+q.Verb+" is not known")
	}
	if err := r.hosts[i].powerOff(now); err != nil {
		return refuse("transient", err.Error())
	}
	return answer{}
}

// create makes one machine for a token, whatever is repeated.
func (r *Rack) create(q question, now time.Time) answer {
	taken := [places]bool{}
	for _, h := range r.hosts {
		if h.token == q.Token {
			return answer{"instance": h.describe(now)}
		}
		if h.ended.IsZero() {
			taken[h.Slot] = true
		}
	}
	slot := slices.Index(taken[:], false)
	if slot < 0 {
		return refuse("capacity", "all machines are taken")
	}
	h := newHost(fmt.Sprintf("m-%d", len(r.hosts)+1), r.seed, slot, q, now)
	if err := r.start(h, q.Spec.Daemon.JoinToken); err != nil {
		return refuse("transient", err.Error())
	}
	r.hosts = append(r.hosts, h)
	return answer{"instance": h.describe(now)}
}

// Hosts are the machines that stand.
func (r *Rack) Hosts() []*Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.hosts), func(h *Host) bool { return !h.ended.IsZero() })
}

// Daemons are the daemons of the machines that stand.
func (r *Rack) Daemons() []*Process {
	var all []*Process
	for _, h := range r.Hosts() {
		all = append(all, h.Daemon)
	}
	return all
}

// Logs are the files that daemons ever wrote to.
func (r *Rack) Logs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, h := range r.hosts {
		all = append(all, h.Daemon.Log())
	}
	return all
}

// bill is every machine that was ever made.
func (r *Rack) bill(now time.Time) []Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Machine
	for _, h := range r.hosts {
		all = append(all, h.bill(now))
	}
	return all
}

// closeRack ends all machines.
func (r *Rack) closeRack() error {
	err := r.server.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hosts {
		err = errors.Join(err, h.powerOff(time.Now()))
	}
	return err
}
