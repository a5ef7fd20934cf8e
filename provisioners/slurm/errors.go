package slurm

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// refusals are texts by which the controller says that it has not done what it
// was asked, in the order in which they are looked for. They are Slurm's own,
// from slurm_errno.c and from answers of 22.05.8.
var refusals = []struct {
	text string
	kind provisioners.Kind
}{
	{"rate limit exceeded", provisioners.KindThrottled},
	{"temporarily unable to accept job", provisioners.KindThrottled},
	{"maxjobcount limit reached", provisioners.KindThrottled},
	{"violates accounting/qos policy", provisioners.KindQuota},
	{"breached requested qos usage threshold", provisioners.KindQuota},
	{"invalid job id specified", provisioners.KindNotFound},
	{"job has already finished", provisioners.KindNotFound},
	{"job is no longer pending execution", provisioners.KindNotFound},
	{"already completing or completed", provisioners.KindNotFound},
	{"access/permission denied", provisioners.KindDenied},
	{"invalid user id", provisioners.KindDenied},
	{"group not permitted to use this partition", provisioners.KindDenied},
	{"access denied to requested reservation", provisioners.KindDenied},
	{"munge encode failed", provisioners.KindTransient}, // before anything was sent; an overloaded munged does it
	{"authentication error", provisioners.KindDenied},
	{"required partition not available", provisioners.KindCapacity},
	{"required node not available", provisioners.KindCapacity},
	{"requested nodes are busy", provisioners.KindCapacity},
	{"requested reservation not usable now", provisioners.KindCapacity},
	{"licenses currently unavailable", provisioners.KindCapacity},
	{"invalid partition", provisioners.KindBadSpec},
	{"partition configuration not available", provisioners.KindBadSpec},
	{"node configuration is not available", provisioners.KindBadSpec},
	{"requested nodes not in this partition", provisioners.KindBadSpec},
	{"invalid account", provisioners.KindBadSpec},
	{"invalid qos", provisioners.KindBadSpec},
	{"requested reservation is invalid", provisioners.KindBadSpec},
	{"invalid feature", provisioners.KindBadSpec},
	{"invalid generic resource", provisioners.KindBadSpec},
	{"invalid license", provisioners.KindBadSpec},
	{"invalid wckey", provisioners.KindBadSpec},
	{"invalid node name", provisioners.KindBadSpec},
	{"time limit is invalid", provisioners.KindBadSpec},
	{"more processors requested than permitted", provisioners.KindBadSpec},
	{"memory required by task is not available", provisioners.KindBadSpec},
	{"parameter too long", provisioners.KindBadSpec},
	{"unrecognized option", provisioners.KindBadSpec},
	{"specification invalid", provisioners.KindBadSpec},
	{" not found", provisioners.KindBadSpec}, // a partition, or Slurm at the other end of ssh
	{"slurm backup controller in standby mode", provisioners.KindTransient},
}

// throttled is how long to wait when Slurm does not say it, which it never does.
const throttled = 5 * time.Second

// commands are Slurm's, as one configured cluster is asked with them.
type commands struct {
	runner
	cluster  string // our name of it
	mostRows int    // of one listing
}

func newCommands(c Config) commands {
	return commands{runner: newRunner(c), cluster: c.Name, mostRows: mostRows}
}

// askSlurm runs a command and returns what it printed. A failure that is no refusal
// is of kind otherwise: what the caller must assume when nothing is known.
func (c commands) askSlurm(ctx context.Context, otherwise provisioners.Kind, stdin string, name string,
	args ...string) (string, error) {
	got, err := c.runCommand(ctx, stdin, name, args...)
	if err := c.checkAnswer(name, got, err, otherwise); err != nil {
		return "", err
	}
	return got.stdout, nil
}

// checkAnswer turns what a command came to into an error, unless it went well.
func (c commands) checkAnswer(name string, got answer, err error, otherwise provisioners.Kind) error {
	switch {
	case errors.Is(err, errNoCommand):
		return &provisioners.Error{Kind: provisioners.KindBadSpec, Scope: c.cluster,
			Message: "Slurm's commands are not here: set bin_dir or command_prefix", Err: err}
	case err != nil:
		return &provisioners.Error{Kind: otherwise, Message: "asking Slurm", Err: err}
	case got.code != 0:
		return commandError(name, got, otherwise)
	}
	return nil
}

// commandError turns a failed command into an error by what it said.
func commandError(name string, got answer, otherwise provisioners.Kind) error {
	said := strings.Join(strings.Fields(got.stderr+" "+got.stdout), " ") // scontrol complains on standard output
	failure := &provisioners.Error{Kind: otherwise, Message: name + " failed: " + truncateText(said)}
	lower := strings.ToLower(said)
	for _, refusal := range refusals {
		if strings.Contains(lower, refusal.text) {
			failure.Kind = refusal.kind
			break
		}
	}
	switch failure.Kind {
	case provisioners.KindQuota:
		failure.Scope = limitName.FindString(said)
	case provisioners.KindThrottled:
		failure.RetryAfter = throttled
	}
	return failure
}

// limitName is how Slurm calls a limit of an account or QOS, such as
// QOSMaxGRESPerUser.
var limitName = regexp.MustCompile(`\b(QOS|Assoc|Max|Grp)[A-Z][A-Za-z]+\b`)

const mostMessage = 300

func truncateText(text string) string {
	if len(text) > mostMessage {
		return text[:mostMessage] + "…"
	}
	return text
}
