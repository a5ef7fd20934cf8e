package ledger

import (
	"errors"
)

// ErrLastOperator means that without this key no operator would be left, or only
// such whose keys expire.
var ErrLastOperator = errors.New("no operator's key that lasts would be left")
