//go:build clouds

package builtin

import (
	"fmt"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
)

func newKubernetes(decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	var config kubernetes.Config
	if err := decode(&config); err != nil {
		return nil, fmt.Errorf("reading the config of a kubernetes provisioner: %w", err)
	}
	if config.Use == kubernetes.UseObserved {
		return provisionerOrNil(kubernetes.NewObserved(config, deps.Clock))
	}
	return provisionerOrNil(kubernetes.New(config, deps.Clock))
}
