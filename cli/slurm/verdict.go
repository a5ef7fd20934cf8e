package slurm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/cli/format"
)

// canPowerDown reports whether any node with GPUs may lose its power.
func (c check) canPowerDown() bool {
	return slices.ContainsFunc(c.Partitions, func(p partition) bool { return len(p.PowersDown) > 0 || p.Hidden > 0 })
}

// chooseWay says how nodes will be kept warm, and why.
func (c check) chooseWay(f facts) way {
	switch {
	case len(c.Partitions) == 0:
		return way{Name: byNothing, Why: []string{"no partition has a node with GPUs"}}
	case !c.Power.Saving:
		return way{Name: byNothing, Why: []string{"nodes always have power: there is no SuspendProgram with a ResumeProgram"}}
	case !c.canPowerDown():
		return way{Name: byNothing, Why: []string{"every node with GPUs always has power: SuspendTime is infinite, or " +
			"SuspendExcNodes and SuspendExcParts name them"}}
	case c.AdminLevel != "administrator":
		return way{Name: byHeartbeats, Why: []string{c.whyHeartbeats()}}
	}
	return way{Name: byPowerUp, Why: []string{"user " + c.User + " may say POWER_UP",
		"nodes are then kept by heartbeats"}}
}

func (c check) whyHeartbeats() string {
	switch c.AdminLevel {
	case "operator":
		return "user " + c.User + " is an Operator, and only an Administrator may say POWER_UP"
	case "unknown":
		return "the rights of user " + c.User + " are not known, and heartbeats need none"
	default:
		return "user " + c.User + " is no Administrator, and needs no special rights for them"
	}
}

// findMissing lists what stands in the way, what is needed first.
func (c check) findMissing(f facts) []missing {
	all := slices.Concat(c.missingHistory(), c.missingSight(f), c.missingPower(), c.brokenNodes(),
		c.missingRights(), c.missingAccounts(f))
	slices.SortStableFunc(all, func(a, b missing) int {
		switch {
		case a.Needed == b.Needed:
			return 0
		case a.Needed:
			return -1
		default:
			return 1
		}
	})
	return all
}

const inConf = "slurm.conf"

// missingHistory is what keeps jobs of the past from being read.
func (c check) missingHistory() []missing {
	switch {
	case c.Accounting.Type == accountingNone:
		return []missing{{What: "there is no accounting", Needed: true, In: inConf,
			Line:     "AccountingStorageType=accounting_storage/slurmdbd",
			Meanings: "forewarm slurm report has no history to read; slurmdbd and its database must run for it"}}
	case !c.Accounting.Answers:
		return []missing{{What: "accounting does not answer: " + c.Accounting.Why, Needed: true, In: "a shell",
			Line: "systemctl status slurmdbd", Meanings: "forewarm slurm report has no history to read"}}
	case !c.Accounting.GPUs:
		return []missing{{What: "accounting does not count GPUs", Needed: true, In: inConf,
			Line:     "AccountingStorageTRES=gres/gpu",
			Meanings: "no job of the past says how many GPUs it had; jobs from then on do"}}
	default:
		return nil
	}
}

// missingSight is what the user is not shown.
func (c check) missingSight(f facts) []missing {
	var all []missing
	if slices.ContainsFunc(c.Partitions, func(p partition) bool { return p.Hidden > 0 }) {
		all = append(all, missing{What: "nodes without power are hidden", Needed: true, In: inConf,
			Line:     "PrivateData=" + strings.Join(append(slices.Clone(c.PrivateData), "cloud"), ","),
			Meanings: "Forewarm cannot name a node that it is not shown; then scontrol reconfigure"})
	}
	if c.AdminLevel == "none" && slices.Contains(c.PrivateData, "jobs") {
		all = append(all, missing{What: "jobs of other users are hidden", Needed: true, In: "a shell",
			Line:     "sacctmgr modify user name=" + c.User + " set adminlevel=Operator",
			Meanings: "a node that others keep busy looks unused; or take jobs out of PrivateData"})
	}
	if c.Accounting.Checked && !f.accounted &&
		c.AdminLevel != "administrator" {
		all = append(all, missing{What: "user " + c.User + " has no account, so that no job of theirs is taken",
			Needed: true, In: "a shell", Line: "sacctmgr add user name=" + c.User + " account=ACCOUNT",
			Meanings: "heartbeats are jobs"})
	}
	return all
}

// missingRights is what would let Forewarm do without heartbeats. They need none,
// so it is never needed.
func (c check) missingRights() []missing {
	if c.Way.Name != byHeartbeats || !c.Accounting.Answers {
		return nil
	}
	return []missing{{What: "POWER_UP needs an Administrator", In: "a shell",
		Line:     "sacctmgr modify user name=" + c.User + " set adminlevel=Administrator",
		Meanings: "nodes would be warmed without jobs in accounting; it is a right over the whole cluster, and not needed"}}
}

// missingAccounts is what lets users say whose work theirs is.
func (c check) missingAccounts(f facts) []missing {
	if c.Accounting.Checked || c.Accounting.Type == accountingNone {
		return nil // without accounting that was said, and there is no account to check
	}
	return []missing{{What: "accounts are not checked", In: inConf,
		Line: "AccountingStorageEnforce=" +
			strings.Join(append(f.config.words("AccountingStorageEnforce"), "associations"), ","),
		Meanings: "a job's account and partition are what its user typed, and Forewarm's holders go by them: name users " +
			"there, or let Slurm check them"}}
}

// shortSuspend is the suspend time in seconds under which heartbeats are many.
const shortSuspend = 60

// missingPower is what makes keeping nodes warm dear.
func (c check) missingPower() []missing {
	shortest := int64(-1)
	for _, p := range c.Partitions {
		if p.SuspendTime != nil && (shortest < 0 || *p.SuspendTime < shortest) {
			shortest = *p.SuspendTime
		}
	}
	if shortest < 0 || shortest >= shortSuspend {
		return nil
	}
	return []missing{{What: fmt.Sprintf("SuspendTime is only %s", format.Seconds(shortest)), In: inConf,
		Line: "SuspendTime=300",
		Meanings: fmt.Sprintf("with %s a node needs %d heartbeats an hour, with 5m it needs %d",
			format.Seconds(shortest), beatsPerHour(shortest), beatsPerHour(300))}}
}

// brokenNodes are nodes that Slurm gave up, as it does after a boot that took too
// long.
func (c check) brokenNodes() []missing {
	var names []string
	for _, p := range c.Partitions {
		for _, name := range p.Broken {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []missing{{What: format.Count(len(names), "node") + " with GPUs " + format.IsOrAre(len(names)) + " down",
		In: "a shell", Line: "scontrol update nodename=" + strings.Join(names, ",") + " state=resume",
		Meanings: "a node whose boot took longer than ResumeTimeout stays down until somebody says this"}}
}
