//go:build clouds

package aws

import (
	"context"
	"regexp"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/provisioners"
)

// phases are EC2's states. A machine that somebody stopped never comes back by
// itself: its place is lost and its disk is billed, so that it counts as being
// on its way out, and the control plane ends it.
var phases = map[types.InstanceStateName]provisioners.Phase{
	types.InstanceStateNamePending:      provisioners.Booting,
	types.InstanceStateNameRunning:      provisioners.Running,
	types.InstanceStateNameStopping:     provisioners.Terminating,
	types.InstanceStateNameStopped:      provisioners.Terminating,
	types.InstanceStateNameShuttingDown: provisioners.Terminating,
	types.InstanceStateNameTerminated:   provisioners.Terminated,
}

func stateOf(row types.Instance) types.InstanceStateName {
	if row.State == nil {
		return ""
	}
	return row.State.Name
}

// isUnderstood reports whether a row says what a row must say.
func isUnderstood(row types.Instance) bool {
	_, known := phases[stateOf(row)]
	return known && sdk.ToString(row.InstanceId) != "" && row.LaunchTime != nil
}

// isLive reports whether the machine is not on its way out.
func isLive(row types.Instance) bool {
	return stateOf(row) == types.InstanceStateNamePending || stateOf(row) == types.InstanceStateNameRunning
}

// completeInstance asks for what the row lacks: the report, and announcements.
func (p *Provisioner) completeInstance(ctx context.Context, row types.Instance) (provisioners.Instance, error) {
	if err := p.readConsole(ctx, row); err != nil {
		return provisioners.Instance{}, err
	}
	notices, err := p.readNotices(ctx, []types.Instance{row})
	if err != nil {
		return provisioners.Instance{}, err
	}
	return p.renderRow(row, notices[sdk.ToString(row.InstanceId)]), nil
}

// renderRow is a row in the port's words, with what is known of it.
func (p *Provisioner) renderRow(row types.Instance, notice *provisioners.Notice) provisioners.Instance {
	i := provisioners.Instance{
		ID: sdk.ToString(row.InstanceId), Token: tagOf(row, tagToken), Owner: tagOf(row, tagOwner),
		NodeID: tagOf(row, tagNode),
		Type:   tagOf(row, tagType), Phase: phases[stateOf(row)], EndedAt: endOf(row),
	}
	if row.LaunchTime != nil {
		i.CreatedAt = row.LaunchTime.UTC()
	}
	if !isLive(row) {
		return i
	}
	i.Notice = notice
	if i.Phase == provisioners.Running {
		if i.Devices, i.Notice = p.devicesOf(row, notice); i.Devices == nil {
			i.Phase = provisioners.Booting
			return i
		}
		host := sdk.ToString(row.PrivateIpAddress)
		if p.config.Address == Public {
			host = sdk.ToString(row.PublicIpAddress)
		}
		if host != "" {
			i.Address = access.Address{Kind: access.SSH, User: p.config.LoginUser, Host: host}.String()
		}
	}
	return i
}

// transition is how EC2 writes the time of a machine's last change of state:
// "User initiated (2026-03-02 09:10:11 GMT)".
var transition = regexp.MustCompile(`\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)$`)

// endOf is until when the machine is billed, zero where EC2 does not say.
// Neither shutting down nor being terminated is billed.
func endOf(row types.Instance) time.Time {
	state := stateOf(row)
	if state != types.InstanceStateNameShuttingDown && state != types.InstanceStateNameTerminated {
		return time.Time{}
	}
	match := transition.FindStringSubmatch(sdk.ToString(row.StateTransitionReason))
	if match == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.DateTime, match[1])
	if err != nil || row.LaunchTime != nil && at.Before(*row.LaunchTime) {
		return time.Time{}
	}
	return at
}
