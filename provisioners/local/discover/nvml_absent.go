//go:build !(linux && cgo)

package discover

import (
	"context"

	"github.com/forewarm/forewarm/core/capacity"
)

// NVML stands for the management library in a program that was built without
// it. Library is not used.
type NVML struct{ Library string }

// Devices says that there is no library.
func (NVML) Devices(context.Context) ([]capacity.Device, error) { return nil, errNoLibrary }
