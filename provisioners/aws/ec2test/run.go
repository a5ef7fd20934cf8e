package ec2test

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
)

// runParameters are the parameters that the fake understands. EC2 refuses one
// that it does not know, and so does the fake: one that it would ignore could
// hide a mistake.
var runParameters = regexp.MustCompile(`^(Action|Version|ClientToken|MinCount|MaxCount|ImageId|InstanceType|` +
	`KeyName|SubnetId|UserData|` +
	`InstanceInitiatedShutdownBehavior|SecurityGroupId\.\d+|Placement\.AvailabilityZone|` +
	`IamInstanceProfile\.(Arn|Name)|` +
	`MetadataOptions\.(HttpTokens|HttpEndpoint|HttpPutResponseHopLimit|InstanceMetadataTags)|` +
	`BlockDeviceMapping\.\d+\.(DeviceName|Ebs\.(DeleteOnTermination|VolumeSize))|` +
	`TagSpecification\.\d+\.(ResourceType|Tag\.\d+\.(Key|Value))|` +
	`InstanceMarketOptions\.(MarketType|SpotOptions\.(MaxPrice|SpotInstanceType|InstanceInterruptionBehavior))|` +
	`CapacityReservationSpecification\.(CapacityReservationPreference|` +
	`CapacityReservationTarget\.CapacityReservationId))$`)

func (r *Region) runInstances(c call) (any, error) {
	for name := range c.form {
		if !runParameters.MatchString(name) {
			return nil, newRefusal("UnknownParameter", "The parameter %s is not recognized", name)
		}
	}
	draft, err := r.draftMachine(c)
	if err != nil {
		return nil, err
	}
	key := draft.token
	if c.form.Get("SubnetId") != "" || c.form.Get("Placement.AvailabilityZone") != "" {
		key += "\n" + draft.zone // a token counts in its zone only, where the request names one
	}
	before, err := r.repeatedLaunch(c, key)
	if err != nil {
		return nil, err
	}
	if before == nil {
		if before, err = r.launchMachine(c, draft); err != nil {
			return nil, err
		}
		if draft.token != "" {
			r.tokens[key] = &launch{parameters: c.form.Encode(), machine: before}
		}
	}
	row := before.rowAt(r.config, c.now)
	if c.fault.Effect == Untagged {
		row.Tags = nil
	}
	return runAnswer{Reservation: "r-" + before.id[2:], Instances: []instanceRow{row}}, nil
}

type runAnswer struct {
	XMLName     xml.Name      `xml:"RunInstancesResponse"`
	Reservation string        `xml:"reservationId"`
	Instances   []instanceRow `xml:"instancesSet>item"`
}

// repeatedLaunch returns the machine that the token has made already.
func (r *Region) repeatedLaunch(c call, key string) (*machine, error) {
	known := r.tokens[key]
	if known == nil {
		return nil, nil
	}
	m := known.machine
	switch {
	case !m.stop.IsZero() && !c.now.Before(m.stop.Add(r.config.Ending).Add(r.config.Remembered)):
		delete(r.tokens, key)
		return nil, nil
	case known.parameters != c.form.Encode():
		return nil, newRefusal("IdempotentParameterMismatch",
			"Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
	case m.stateAt(r.config, c.now) == terminated: // since January 2025, see boto/boto3#4406
		return nil, newRefusal("IdempotentInstanceTerminated",
			"The client token you have provided is associated with a terminated instance. Please use a different "+
				"client token.")
	}
	return m, nil
}

// launchMachine makes the machine if there is room for it.
func (r *Region) launchMachine(c call, m *machine) (*machine, error) {
	price, err := r.priceMachine(m, c)
	if err != nil {
		return nil, err
	}
	if err := r.checkRoom(m, c.now); err != nil {
		return nil, err
	}
	m.price = price
	r.addMachine(m)
	return m, nil
}

// addMachine gives the machine an id that no other has, or will have.
func (r *Region) addMachine(m *machine) {
	r.made++
	m.id = fmt.Sprintf("i-%017x", uint64(r.made)*0x9e3779b1&0xfffffffffffff)
	for i := range m.gpus {
		m.gpus[i].UUID = fmt.Sprintf("GPU-%s-%d", m.id[2:], i)
	}
	r.machines, r.byID[m.id] = append(r.machines, m), m
}

func (r *Region) priceMachine(m *machine, c call) (money.MicroUSD, error) {
	switch m.market {
	case "spot":
		m.spot = "fulfilled"
		text := c.form.Get("InstanceMarketOptions.SpotOptions.MaxPrice")
		var most provisioners.Price
		if text != "" && most.UnmarshalText([]byte(text)) != nil {
			return 0, newRefusal("InvalidParameterValue", "Invalid spot price %s", text)
		}
		if text != "" && money.MicroUSD(most) < m.kind.Spot {
			return 0, newRefusal("SpotMaxPriceTooLow",
				"Your Spot request price of %s is lower than the minimum required Spot request fulfillment price "+
					"of %s.", text, m.kind.Spot.Decimal())
		}
		return m.kind.Spot, nil
	case "capacity-block":
		return m.kind.Block, nil
	}
	return m.kind.OnDemand, nil
}

// checkRoom refuses a machine for which there is no capacity or quota.
func (r *Region) checkRoom(m *machine, now time.Time) error {
	if m.reservation != "" {
		return r.checkReservation(m, now)
	}
	if slices.Contains(m.kind.MissesFrom, m.zone) {
		return newRefusal("Unsupported",
			"Your requested instance type (%s) is not supported in your requested Availability Zone (%s).", m.kind.Name,
			m.zone)
	}
	stock, limited := r.stock[[2]string{m.zone, m.kind.Name}]
	if taken := r.countLive(func(x *machine) bool {
		return x.zone == m.zone && x.kind.Name == m.kind.Name &&
			x.reservation == ""
	}); limited && taken >= stock {
		return newRefusal("InsufficientInstanceCapacity",
			"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", m.kind.Name,
			m.zone)
	}
	used := 0
	for _, x := range r.machines {
		if x.stop.IsZero() && x.market == "on-demand" {
			used += x.kind.VCPUs
		}
	}
	if limit := r.config.VCPULimit; limit > 0 && m.market == "on-demand" && used+m.kind.VCPUs > limit {
		return newRefusal("VcpuLimitExceeded",
			"You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance "+
				"bucket that the specified instance type belongs to.", limit)
	}
	return nil
}

func (r *Region) checkReservation(m *machine, now time.Time) error {
	reservation, known := r.config.findReservation(m.reservation)
	switch {
	case !known:
		return newRefusal("InvalidCapacityReservationId.NotFound", "The capacity reservation '%s' does not exist",
			m.reservation)
	case reservation.Block != (m.market == "capacity-block"), reservation.Type != m.kind.Name,
		reservation.Zone != m.zone:
		return newRefusal("InvalidParameterValue", "The capacity reservation %s does not match the request",
			m.reservation)
	case reservation.Block && (now.Before(reservation.Start) || !now.Before(reservation.endsAt())),
		r.countLive(func(x *machine) bool { return x.reservation == m.reservation }) >= reservation.Count:
		return newRefusal("ReservationCapacityExceeded",
			"The requested reservation does not have sufficient compatible and available capacity for this request.")
	}
	return nil
}

// countLive counts the machines whose end has not begun.
func (r *Region) countLive(which func(*machine) bool) int {
	n := 0
	for _, m := range r.machines {
		if m.stop.IsZero() && which(m) {
			n++
		}
	}
	return n
}
