//go:build clouds

package builtin

import (
	"fmt"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/gcp"
)

func newGCP(decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	var config gcp.Config
	if err := decode(&config); err != nil {
		return nil, fmt.Errorf("reading the config of a gcp provisioner: %w", err)
	}
	config = config.WithDefaults()
	config.StateFile = deps.stateFile(config.StateFile, config.Name)
	return provisionerOrNil(gcp.New(config, deps.Clock))
}
