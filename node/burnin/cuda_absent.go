//go:build !(linux && cgo)

package burnin

import "fmt"

// HasCUDA says whether this program can ask the CUDA driver.
const HasCUDA = false

func openDevice(string) (device, error) {
	return nil, fmt.Errorf("%w: this program was built without it", errNoCUDA)
}
