//go:build clouds

package builtin

import (
	"fmt"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws"
)

func newAWS(decode func(any) error, deps Deps) (provisioners.Provisioner, error) {
	var config aws.Config
	if err := decode(&config); err != nil {
		return nil, fmt.Errorf("reading the config of an aws provisioner: %w", err)
	}
	return provisionerOrNil(aws.New(config, deps.Clock))
}
