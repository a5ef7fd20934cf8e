package ec2test

import (
	"cmp"
	"slices"
	"time"
)

type instanceRow struct {
	ID          string    `xml:"instanceId,omitempty"`
	Image       string    `xml:"imageId"`
	State       stateRow  `xml:"instanceState"`
	PrivateIP   string    `xml:"privateIpAddress,omitempty"`
	PublicIP    string    `xml:"ipAddress,omitempty"`
	Transition  string    `xml:"reason"`
	Key         string    `xml:"keyName,omitempty"`
	Type        string    `xml:"instanceType"`
	Launched    string    `xml:"launchTime"`
	Zone        string    `xml:"placement>availabilityZone"`
	Subnet      string    `xml:"subnetId,omitempty"`
	Token       string    `xml:"clientToken"`
	Lifecycle   string    `xml:"instanceLifecycle,omitempty"`
	SpotRequest string    `xml:"spotInstanceRequestId,omitempty"`
	Reservation string    `xml:"capacityReservationId,omitempty"`
	Reason      reasonRow `xml:"stateReason"`
	Tags        []tagRow  `xml:"tagSet>item"`
}

type stateRow struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type reasonRow struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type tagRow struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

const wireTime = "2006-01-02T15:04:05.000Z"

// rowAt is the machine as it was at that time.
func (m *machine) rowAt(c Config, at time.Time) instanceRow {
	state := m.stateAt(c, at)
	row := instanceRow{
		ID: m.id, Image: m.image, State: stateRow{Code: stateCodes[state], Name: state}, Key: m.key, Type: m.kind.Name,
		Launched: m.born.UTC().Format(wireTime), Zone: m.zone, Token: m.token, Reservation: m.reservation,
		Tags: m.tagRows(at),
	}
	if m.market != "on-demand" {
		row.Lifecycle = m.market
	}
	if m.market == "spot" {
		row.SpotRequest = m.spotRequest()
	}
	if m.endedAt(at) {
		row.Transition, row.Reason = m.told, reasonRow{Code: m.reason[0], Message: m.reason[0] + ": " + m.reason[1]}
	} else {
		row.PrivateIP, row.PublicIP, row.Subnet = m.addressWith("10"), m.addressWith("198"), m.subnet
	}
	return row
}

func (m *machine) spotRequest() string { return "sir-" + m.id[len(m.id)-8:] }

func (m *machine) tagRows(at time.Time) []tagRow {
	values := map[string]string{}
	for _, t := range m.tags {
		if !t.at.After(at) {
			values[t.key] = t.value
		}
	}
	var rows []tagRow
	for key, value := range values {
		rows = append(rows, tagRow{Key: key, Value: value})
	}
	slices.SortFunc(rows, func(a, b tagRow) int { return cmp.Compare(a.Key, b.Key) })
	return rows
}
