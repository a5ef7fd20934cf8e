package pools

import (
	"strings"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// holderHelp says what --holder takes.
const holderHelp = "of an observed pool, whose work is what: organization=ORG with account=, user=, namespace= or " +
	"queue=, separated by commas; the first that fits (may be repeated)"

// accessHelp says what --access takes.
const accessHelp = "what holders are told of its nodes: shell, how to get in; devices, only the indices and UUIDs of " +
	"their GPUs"

// driverHelp says what --min-driver takes.
const driverHelp = "the oldest GPU driver with which its nodes are used, as their daemons tell it, as in 535.104.05"

// isolationHelp says what --isolation takes.
const isolationHelp = "how well a node must keep holders apart for work of two organizations to be on it at once: " +
	"devices, user or environment"

const (
	warnHelp = "how long the GPUs of an allocation do nothing until its holder is warned; 0s: never"
	// reclaimHelp is of what happens to whoever was warned.
	reclaimHelp = "how long they do nothing until the allocation ends, more than --idle-warn-after; 0s: never"
)

// parseHolders reads the values of --holder.
func parseHolders(values []string) ([]contract.PoolHolder, error) {
	holders := []contract.PoolHolder{}
	for _, value := range values {
		var h contract.PoolHolder
		fields := map[string]*string{"organization": &h.Organization, "account": &h.Account, "user": &h.User,
			"namespace": &h.Namespace, "queue": &h.Queue}
		for part := range strings.SplitSeq(value, ",") {
			key, is, ok := strings.Cut(part, "=")
			if field := fields[strings.TrimSpace(key)]; ok && field != nil && is != "" {
				*field = strings.TrimSpace(is)
				continue
			}
			return nil, exit.UsageErrorf("forewarm pools create --help",
				"--holder %q: %q is not one of organization=, account=, user=, namespace=, queue= with a value", value, part)
		}
		holders = append(holders, h)
	}
	return holders, nil
}
