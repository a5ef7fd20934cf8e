//go:build clouds

package aws

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws/guest"
)

const (
	// lookAgain is how long a machine that has not reported is left in peace:
	// consoles are read one at a time and count against the account's rate.
	lookAgain = 10 * time.Second
	// trusted is how long a report is believed before the console is read again.
	trusted = 10 * time.Minute
)

// readConsole reads the machine's report when it is time to.
func (p *Provisioner) readConsole(ctx context.Context, row types.Instance) error {
	if p.config.Probe == ProbeNone || stateOf(row) != types.InstanceStateNameRunning {
		return nil
	}
	id, now := sdk.ToString(row.InstanceId), p.clock.Now()
	known := p.sightingOf(id)
	wait := lookAgain
	if known.proved {
		wait = trusted
	}
	if !known.looked.IsZero() && now.Sub(known.looked) < wait {
		return nil
	}
	out, err := p.client.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: sdk.String(id),
		Latest: sdk.Bool(true)})
	switch {
	case err == nil:
	case known.proved || isUnknownInstance(err): // an old report is better than no answer
		return nil
	default:
		return readError("reading the console of "+id, err)
	}
	text, err := base64.StdEncoding.DecodeString(sdk.ToString(out.Output))
	report, found := guest.Find(string(text))
	found = found && err == nil
	p.updateSighting(id, func(s *sighting) {
		s.looked = now
		if found { // the console forgets old lines
			s.report, s.proved = report, true
		}
	})
	return nil
}

// devicesOf are the GPUs that can be used; nil as long as there is no report. A GPU
// with memory errors that could not be corrected is left out, so that the
// control plane's gate counts too few and takes the machine out of use; the
// notice says why.
func (p *Provisioner) devicesOf(row types.Instance, notice *provisioners.Notice) (
	[]capacity.Device, *provisioners.Notice) {
	offer, known := p.findOffer(tagOf(row, tagType))
	if p.config.Probe == ProbeNone {
		return offer.assumedDevices(sdk.ToString(row.InstanceId)), notice
	}
	s := p.sightingOf(sdk.ToString(row.InstanceId))
	if !s.proved {
		return nil, notice
	}
	devices := []capacity.Device{}
	for _, g := range s.report.GPUs {
		if g.ECC != nil && *g.ECC > 0 {
			notice = cmp.Or(notice, &provisioners.Notice{
				Kind:    provisioners.NoticeDegraded,
				Message: fmt.Sprintf("GPU %d (%s) has %d uncorrected memory errors", g.Index, g.UUID, *g.ECC),
			})
			continue
		}
		device := capacity.Device{UUID: g.UUID, Index: g.Index, Model: g.Name, MemoryMiB: g.MemoryMiB}
		if known && (offer.GPUName == "" || strings.EqualFold(offer.GPUName, g.Name)) {
			device.Model = offer.Model
		}
		devices = append(devices, device)
	}
	slices.SortStableFunc(devices, func(a, b capacity.Device) int { return cmp.Compare(a.Index, b.Index) })
	return devices, notice
}

// assumedDevices are the devices of a machine that nobody looked at.
func (o Offer) assumedDevices(id string) []capacity.Device {
	devices := []capacity.Device{}
	for i := range o.GPUs {
		devices = append(devices, capacity.Device{UUID: fmt.Sprintf("%s-gpu-%d", id, i), Index: i, Model: o.Model,
			MemoryMiB: o.MemoryMiB})
	}
	return devices
}
