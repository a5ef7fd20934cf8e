// Package builtin is the list of every provisioner that comes with the program.
// It is the only package that imports more than one adapter. Adding one is a
// line in Kinds.
package builtin

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/exec"
	"github.com/forewarm/forewarm/provisioners/local"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/provisioners/simcluster"
	"github.com/forewarm/forewarm/provisioners/slurm"
	"github.com/forewarm/forewarm/provisioners/ssh"
)

// Deps is what the program gives to every provisioner.
type Deps struct {
	Clock clock.Clock
	// StateDir is the folder for the state files of provisioners whose config
	// names none. Empty means that these keep their state in memory only.
	StateDir string
}

// Constructor makes a provisioner from its raw config. decode fills a pointer
// to the adapter's Config; it must refuse keys that the Config does not have.
type Constructor func(decode func(any) error, deps Deps) (provisioners.Provisioner, error)

// Kinds maps each kind, as it is written in a configuration, to its
// constructor. It is read only.
var Kinds = withClouds(map[string]Constructor{
	"exec":       newExec,
	"local":      newLocal,
	"sim":        newSim,
	"simcluster": newSimCluster,
	"slurm":      newSlurm,
	"ssh":        newSSH,
})

func withClouds(kinds map[string]Constructor) map[string]Constructor {
	maps.Copy(kinds, cloudKinds)
	return kinds
}

// New makes a provisioner of the kind. An unknown kind is an error that lists
// the known ones.
func New(kind string, decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	construct, found := Kinds[kind]
	if !found {
		return nil, fmt.Errorf("unknown kind of provisioner %q: want one of %s", kind, Known())
	}
	return construct(decode, deps)
}

// Known lists the kinds for the text of errors and help.
func Known() string { return strings.Join(slices.Sorted(maps.Keys(Kinds)), ", ") }

func newExec(decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	var config exec.Config
	if err := decode(&config); err != nil {
		return nil, fmt.Errorf("reading the config of an exec provisioner: %w", err)
	}
	return exec.New(config, deps.Clock)
}

func newSim(decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	var config sim.Config
	if err := decode(&config); err != nil {
		return nil, fmt.Errorf("reading the config of a sim provisioner: %w", err)
	}
	config = config.WithDefaults()
	config.StateFile = deps.stateFile(config.StateFile, config.Name)
	return provisionerOrNil(sim.New(config, deps.Clock))
}

func newSimCluster(decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	var config simcluster.Config
	if err := decode(&config); err != nil {
		return nil, fmt.Errorf("reading the config of a simcluster provisioner: %w", err)
	}
	config = config.WithDefaults()
	config.StateFile = deps.stateFile(config.StateFile, config.Name)
	return provisionerOrNil(simcluster.New(config, deps.Clock))
}

func newLocal(decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	var config local.Config
	if err := decode(&config); err != nil {
		return nil, fmt.Errorf("reading the config of a local provisioner: %w", err)
	}
	config = config.WithDefaults()
	config.StateFile = deps.stateFile(config.StateFile, config.Name)
	return provisionerOrNil(local.New(config, deps.Clock))
}

func newSlurm(decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	var config slurm.Config
	if err := decode(&config); err != nil {
		return nil, fmt.Errorf("reading the config of a slurm provisioner: %w", err)
	}
	config = config.WithDefaults()
	config.StateFile = deps.stateFile(config.StateFile, config.Name)
	if config.Use == slurm.UseObserved {
		return provisionerOrNil(slurm.NewObserved(config, deps.Clock))
	}
	return provisionerOrNil(slurm.New(config, deps.Clock))
}

func newSSH(decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	var config ssh.Config
	if err := decode(&config); err != nil {
		return nil, fmt.Errorf("reading the config of an ssh provisioner: %w", err)
	}
	return provisionerOrNil(ssh.New(config, deps.Clock))
}

// provisionerOrNil keeps a failed constructor's nil pointer out of the interface, where
// it would not equal nil.
func provisionerOrNil[P provisioners.Provisioner](provisioner P, err error) (provisioners.Provisioner, error) {
	if err != nil {
		return nil, err
	}
	return provisioner, nil
}

// stateFile is safe with any name: an invalid one is refused before the file is
// touched.
func (d Deps) stateFile(configured, name string) string {
	if configured != "" || d.StateDir == "" {
		return configured
	}
	return filepath.Join(d.StateDir, "provisioner-"+name+".json")
}
