package slurm

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// features is a constraint that we can hold against a node by ourselves.
var features = regexp.MustCompile(`^[A-Za-z0-9_.:-]+(&[A-Za-z0-9_.:-]+)*$|^[A-Za-z0-9_.:-]+(\|[A-Za-z0-9_.:-]+)*$`)

// checkUse returns what is wrong with the use, and with fields that do not go with it.
func (c Config) checkUse() []error {
	var mistakes []error
	wrong := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	if !slices.Contains([]string{WarmAuto, WarmHeartbeat}, c.Warm) {
		wrong("warm: %q is not %s or %s", c.Warm, WarmAuto, WarmHeartbeat)
	}
	switch c.Use {
	case UseObserved:
	case UseReserved:
		if c.Warm != WarmAuto {
			wrong("warm: is for use: observed only; leave it out")
		}
		return mistakes
	default:
		return append(mistakes, fmt.Errorf("use: %q is not %s or %s", c.Use, UseReserved, UseObserved))
	}
	for i, arg := range c.ExtraArgs {
		if name, _, _ := strings.Cut(arg, "="); !slices.Contains([]string{"--licenses", "--nice", "--wckey"}, name) {
			wrong("extra_args[%d]: %s cannot be used with use: observed, where each heartbeat is bound to the node that "+
				"was chosen for it; only --licenses, --nice and --wckey can: remove it", i, name)
		}
	}
	if c.Daemon.Program != "" {
		wrong("daemon: nothing of ours runs on a node with use: observed; remove it")
	}
	if c.QueueWhenFull {
		mistakes = append(mistakes, errors.New("queue_when_full: nothing is queued with use: observed; remove it"))
	}
	for i, o := range c.Offers {
		if o.Constraint != "" && !features.MatchString(o.Constraint) {
			wrong("offers[%d].constraint: %q is not names of features joined by & or by |, which are all that use: observed "+
				"can hold against a node", i, o.Constraint)
		}
		if o.Interruptible || o.PreemptionWarning != 0 {
			wrong("offers[%d].interruptible: nothing is preempted with use: observed, which holds no GPU; remove it and "+
				"preemption_warning", i)
		}
	}
	return mistakes
}
