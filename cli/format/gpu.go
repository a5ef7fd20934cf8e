package format

import (
	"fmt"
	"strconv"

	"github.com/forewarm/forewarm/contract"
)

// GPUPlace is where a GPU is on its node: its index, and its number where it is a share of a GPU.
func GPUPlace(x contract.GPU) string {
	if x.Share == nil {
		return strconv.Itoa(x.Index)
	}
	return fmt.Sprintf("%d::%d", x.Index, *x.Share)
}
