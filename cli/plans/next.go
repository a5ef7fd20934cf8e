package plans

import (
	"github.com/forewarm/forewarm/contract"
)

// NextCommands are the commands that somebody may want to run after an allocation was shown.
func NextCommands(x contract.Allocation) string {
	switch x.State {
	case "active":
		return "Next:  forewarm extend " + x.ID + " --by 1h  ·  forewarm release " + x.ID
	case "pending":
		return "Next:  forewarm wait " + x.ID + "  ·  forewarm release " + x.ID
	default:
		return "Next:  forewarm allocations list"
	}
}
