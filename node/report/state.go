package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/node/watch"
)

// Identity is by what the daemon proves who it is.
type Identity struct {
	NodeID string `json:"node_id"`
	Key    string `json:"key"`
	// Earlier are the keys before, the newest first: one that a control plane knows which was restored from a backup.
	Earlier []string `json:"earlier,omitempty"`
}

// State is the daemon's folder. What is in it is written atomically and durably, and only
// its user may read it.
type State struct{ dir string }

// OpenState makes the folder where it is missing. One that others may read is refused, as
// it holds a key.
func OpenState(dir string) (State, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return State{}, fmt.Errorf("making the state folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return State{}, fmt.Errorf("looking at the state folder: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return State{}, fmt.Errorf("%s holds the node's key, and others may look into it: chmod 700 %s", dir, dir)
	}
	return State{dir: dir}, nil
}

// Welcome is a daemon that the control plane has heard.
type Welcome struct {
	Version string `json:"version"`
	BootID  string `json:"boot_id"`
	Epoch   int64  `json:"epoch"`
}

func (s State) welcomeFile() string  { return filepath.Join(s.dir, "welcome.json") }
func (s State) identityFile() string { return filepath.Join(s.dir, "identity.json") }
func (s State) healthFile() string   { return filepath.Join(s.dir, "health.json") }

// Identity returns the identity of a node, or an empty one: the daemon has to join.
func (s State) Identity(nodeID string) (Identity, error) {
	var id Identity
	_, err := statefile.ReadKnown(s.identityFile(), &id)
	switch {
	case err != nil:
		return id, err
	case id.NodeID != "" && id.NodeID != nodeID:
		return id, fmt.Errorf("%s is of node %s, and this is to be %s: use another state folder, or remove it",
			s.identityFile(), id.NodeID, nodeID)
	}
	id.NodeID = nodeID
	return id, nil
}

// SaveIdentity stores the identity.
func (s State) SaveIdentity(id Identity) error { return statefile.Write(s.identityFile(), id) }

// Welcomed returns which daemon the control plane heard last; the zero value: none.
func (s State) Welcomed() (Welcome, error) {
	var w Welcome
	_, err := statefile.ReadKnown(s.welcomeFile(), &w)
	return w, err
}

// Health returns what was known of the GPUs. What cannot be read is forgotten: the next
// looks say it anew.
func (s State) Health() watch.Memory {
	var m watch.Memory
	if _, err := statefile.ReadKnown(s.healthFile(), &m); err != nil {
		return watch.Memory{}
	}
	return m
}

// SaveHealth stores what is known of the GPUs.
func (s State) SaveHealth(m watch.Memory) error { return statefile.Write(s.healthFile(), m) }

// errNoToken says that the daemon would have to join, and cannot.
var errNoToken = errors.New("it has no key of this node, and was given no join token")
