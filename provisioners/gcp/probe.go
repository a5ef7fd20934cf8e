//go:build clouds

package gcp

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/gcp/guest"
)

// probeEvery is how often one machine's guest attributes are read at most.
// Google allows ten queries a minute of a machine's, and a booting machine is
// looked at every two seconds.
const probeEvery = 10 * time.Second

// reading is what a machine wrote, as it was read last.
type reading struct {
	at      time.Time
	report  guest.Report
	problem string
}

// probes keeps the last reading of each machine. Losing it costs a call.
type probes struct {
	mu       sync.Mutex
	readings map[uint64]reading
}

func newProbes() *probes { return &probes{readings: map[uint64]reading{}} }

func (p *probes) getReading(number uint64) (reading, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, known := p.readings[number]
	return r, known
}

// putReading also drops what nobody has asked about for long: machines that ended while
// somebody else looked.
func (p *probes) putReading(number uint64, r reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.readings, func(_ uint64, old reading) bool { return r.at.Sub(old.at) > time.Hour })
	p.readings[number] = r
}

func (p *probes) dropReading(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.readings, number)
}

// readProbe returns what the machine wrote, not older than probeEvery.
func (c *Cloud) readProbe(ctx context.Context, place ref) (reading, error) {
	now := c.clock.Now()
	if known, read := c.probes.getReading(place.number); read && now.Sub(known.at) < probeEvery {
		return known, nil
	}
	values, problem, err := c.readGuestAttributes(ctx, place, guest.Namespace)
	if err != nil {
		return reading{}, err
	}
	fresh := reading{at: now, problem: problem}
	if fresh.report, err = guest.Read(values); err != nil {
		fresh.report, fresh.problem = guest.Report{}, err.Error()
	}
	c.probes.putReading(place.number, fresh)
	return fresh, nil
}

// lastProbe is for lists, which may not cost a call for each machine each time:
// a machine whose GPUs are known is not asked again, and one that does not
// answer is not ready.
func (c *Cloud) lastProbe(ctx context.Context, place ref) (reading, error) {
	if known, read := c.probes.getReading(place.number); read && len(known.report.GPUs) > 0 {
		return known, nil
	}
	fresh, err := c.readProbe(ctx, place)
	if err != nil {
		return reading{}, nil
	}
	return fresh, nil
}

// devicesOf are the machine's GPUs under the one model that it is offered as,
// which is what the health gate looks for. Without a probe their ids are made
// up from Google's number of the machine, which never comes twice.
func (c Config) devicesOf(place ref, offer Offer, read reading) []capacity.Device {
	var devices []capacity.Device
	if c.Probe == NoProbe {
		for i := range offer.GPUs {
			devices = append(devices, capacity.Device{
				UUID: fmt.Sprintf("GPU-UNPROBED-%d-%d", place.number, i), Index: i, Model: offer.Model,
				MemoryMiB: offer.MemoryMiB,
			})
		}
		return devices
	}
	for _, g := range read.report.GPUs {
		model := offer.Model
		if model == "" {
			model = g.Name
		}
		devices = append(devices, capacity.Device{UUID: g.UUID, Index: g.Index, Model: model, MemoryMiB: g.MemoryMiB})
	}
	return devices
}

// expiringWithin is how long before its end a reservation's machines say so.
const expiringWithin = time.Hour

// noticeOf is the most urgent announcement about a machine that runs or boots.
func noticeOf(i *compute.Instance, offer Offer, read reading, now time.Time) *provisioners.Notice {
	if seen := read.report.Notice; !seen.IsZero() {
		return &provisioners.Notice{Kind: provisioners.NoticeInterruption, At: seen.Add(preemptionNotice),
			Message: "Google takes the spot machine back"}
	}
	if upcoming := maintenanceNotice(i); upcoming != nil {
		return upcoming
	}
	if trouble := read.troubleText(offer); trouble != "" {
		return &provisioners.Notice{Kind: provisioners.NoticeDegraded, Message: trouble}
	}
	if !offer.Until.IsZero() && offer.Until.Sub(now) < expiringWithin {
		return &provisioners.Notice{Kind: provisioners.NoticeExpiring, At: offer.Until,
			Message: "the reservation " + offer.Reservation + " ends"}
	}
	return nil
}

// maintenanceNotice is what Google announces for the machine's host. A machine with
// GPUs cannot be moved while it runs: it is stopped when the window begins.
func maintenanceNotice(i *compute.Instance) *provisioners.Notice {
	if i.ResourceStatus == nil || i.ResourceStatus.UpcomingMaintenance == nil {
		return nil
	}
	upcoming := i.ResourceStatus.UpcomingMaintenance
	if upcoming.MaintenanceStatus != "PENDING" && upcoming.MaintenanceStatus != "ONGOING" {
		return nil
	}
	return &provisioners.Notice{
		Kind: provisioners.NoticeDegraded, At: parseTime(upcoming.WindowStartTime),
		Message: formatMessage(fmt.Sprintf("%s maintenance of its host, %s %v", upcoming.Type,
			upcoming.MaintenanceStatus,
			upcoming.MaintenanceReasons), ""),
	}
}

// troubleText says what is wrong with a machine by its own report.
func (r reading) troubleText(offer Offer) string {
	switch {
	case r.problem != "":
		return r.problem
	case r.report.Error != "":
		return r.report.Error
	case offer.GPUs != 0 && len(r.report.GPUs) != 0 && len(r.report.GPUs) != offer.GPUs:
		return fmt.Sprintf("it has %d of %d GPUs", len(r.report.GPUs), offer.GPUs)
	}
	for _, g := range r.report.GPUs {
		if g.ECCUncorrected > 0 {
			return fmt.Sprintf("GPU %s has %d memory errors that were not corrected", g.UUID, g.ECCUncorrected)
		}
	}
	return ""
}
