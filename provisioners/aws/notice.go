//go:build clouds

package aws

import (
	"context"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/forewarm/forewarm/provisioners"
)

const (
	maxFilterValues = 200
	// eventsTrusted is how old the table of scheduled events may be. They are
	// announced days ahead, and one table serves every machine.
	eventsTrusted = time.Minute
	maxEventPages = 20
)

// readNotices are the announcements for those of the machines that stand, the most
// urgent of each.
func (p *Provisioner) readNotices(ctx context.Context, rows []types.Instance) (map[string]*provisioners.Notice, error) {
	notices := map[string]*provisioners.Notice{}
	var spot []string
	for _, row := range rows {
		if !isLive(row) {
			continue
		}
		id := sdk.ToString(row.InstanceId)
		if row.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
			spot = append(spot, id)
		}
		notices[id] = p.expiryNotice(row)
	}
	if len(notices) == 0 {
		return nil, nil
	}
	scheduled, err := p.readScheduled(ctx)
	if err != nil {
		return nil, err
	}
	for id, notice := range scheduled {
		if current, asked := notices[id]; asked && (current == nil || notice.At.Before(current.At)) {
			notices[id] = &notice
		}
	}
	return notices, p.addReclaims(ctx, spot, notices)
}

// expiryNotice is known from the day that a block is bought, and said only when it
// comes near: a node with a notice gets no new work.
func (p *Provisioner) expiryNotice(row types.Instance) *provisioners.Notice {
	offer, known := p.findOffer(tagOf(row, tagType))
	if !known || !offer.isClosing(p.clock.Now()) {
		return nil
	}
	return &provisioners.Notice{
		Kind: provisioners.NoticeExpiring, At: offer.usableUntil(),
		Message: string(offer.Market) + " " + offer.ReservationID + " ends at " +
			offer.Until.UTC().Format(time.RFC3339),
	}
}

// isReclaim reports whether the status of a spot request means that its machine
// is being taken away. Of machines that are terminated and not stopped, EC2 says
// the end of it at once, while they run for two more minutes.
func isReclaim(code string) bool {
	return strings.HasPrefix(code, "marked-for-") || strings.HasPrefix(code, "instance-terminated-") ||
		strings.HasPrefix(code, "instance-stopped-")
}

// addReclaims puts the interruptions of the spot machines over other notices.
func (p *Provisioner) addReclaims(ctx context.Context, ids []string, notices map[string]*provisioners.Notice) error {
	slices.Sort(ids)
	for some := range slices.Chunk(ids, maxFilterValues) {
		out, err := p.client.DescribeSpotInstanceRequests(ctx, &ec2.DescribeSpotInstanceRequestsInput{
			Filters: []types.Filter{{Name: sdk.String("instance-id"), Values: some}},
		})
		if err != nil {
			return readError("reading spot requests", err)
		}
		for _, request := range out.SpotInstanceRequests {
			if request.Status == nil || !isReclaim(sdk.ToString(request.Status.Code)) {
				continue
			}
			notice := &provisioners.Notice{
				Kind:    provisioners.NoticeInterruption,
				Message: sdk.ToString(request.Status.Code) + ": " + sdk.ToString(request.Status.Message),
			}
			if at := request.Status.UpdateTime; at != nil {
				notice.At = at.UTC().Add(spotNotice)
			}
			notices[sdk.ToString(request.InstanceId)] = notice
		}
	}
	return nil
}

// events is a table of what EC2 has scheduled for the account's machines.
type events struct {
	read  time.Time
	table map[string]provisioners.Notice
}

func (p *Provisioner) readScheduled(ctx context.Context) (map[string]provisioners.Notice, error) {
	p.mu.Lock()
	known := p.events
	p.mu.Unlock()
	now := p.clock.Now()
	if known.table != nil && now.Sub(known.read) < eventsTrusted {
		return known.table, nil
	}
	table, err := p.readEvents(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.events = events{read: now, table: table}
	p.mu.Unlock()
	return table, nil
}

// endings are the events after which the machine is gone; the others disturb it.
var endings = []types.EventCode{types.EventCodeInstanceRetirement, types.EventCodeInstanceStop}

func (p *Provisioner) readEvents(ctx context.Context) (map[string]provisioners.Notice, error) {
	table := map[string]provisioners.Notice{}
	input := &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{{Name: sdk.String("event.code"), Values: []string{
		string(types.EventCodeInstanceReboot), string(types.EventCodeSystemReboot),
		string(types.EventCodeSystemMaintenance),
		string(types.EventCodeInstanceRetirement), string(types.EventCodeInstanceStop),
	}}}}
	for range maxEventPages {
		out, err := p.client.DescribeInstanceStatus(ctx, input)
		if err != nil {
			return nil, readError("reading scheduled events", err)
		}
		for _, status := range out.InstanceStatuses {
			for _, event := range status.Events {
				if notice, counts := eventNotice(event); counts {
					id := sdk.ToString(status.InstanceId)
					if before, twice := table[id]; !twice || notice.At.Before(before.At) {
						table[id] = notice
					}
				}
			}
		}
		if sdk.ToString(out.NextToken) == "" {
			break
		}
		input.NextToken = out.NextToken
	}
	return table, nil
}

// eventNotice is an event as a notice. One that is over is still shown for a week,
// with a word before its description.
func eventNotice(event types.InstanceStatusEvent) (provisioners.Notice, bool) {
	text := sdk.ToString(event.Description)
	if strings.HasPrefix(text, "[Completed]") || strings.HasPrefix(text, "[Canceled]") {
		return provisioners.Notice{}, false
	}
	notice := provisioners.Notice{Kind: provisioners.NoticeDegraded, Message: string(event.Code) + ": " + text}
	if slices.Contains(endings, event.Code) {
		notice.Kind = provisioners.NoticeExpiring
	}
	if event.NotBefore != nil {
		notice.At = event.NotBefore.UTC()
	}
	return notice, true
}
