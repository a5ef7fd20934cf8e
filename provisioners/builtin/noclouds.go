//go:build !clouds

package builtin

import (
	"fmt"

	"github.com/forewarm/forewarm/provisioners"
)

// cloudKinds answer what to do: their SDKs take minutes and gigabytes to
// compile, so that they are in builds with the tag clouds only.
var cloudKinds = map[string]Constructor{
	"aws":        lacksClouds("aws"),
	"gcp":        lacksClouds("gcp"),
	"kubernetes": lacksClouds("kubernetes"),
}

func lacksClouds(kind string) Constructor {
	return func(func(any) error, Deps) (provisioners.Provisioner, error) {
		return nil, fmt.Errorf("this program was built without %s: build it with `make bin/forewarm CLOUDS=1`", kind)
	}
}
