package ec2test

import (
	"encoding/xml"
	"time"
)

type spotStatus struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
	At      string `xml:"updateTime"`
}

func (r *Region) describeSpot(c call) (any, error) {
	type row struct {
		ID       string     `xml:"spotInstanceRequestId"`
		Instance string     `xml:"instanceId"`
		State    string     `xml:"state"`
		Status   spotStatus `xml:"status"`
	}
	type answer struct {
		XMLName xml.Name `xml:"DescribeSpotInstanceRequestsResponse"`
		Rows    []row    `xml:"spotInstanceRequestSet>item"`
	}
	var a answer
	for _, m := range r.machines {
		if m.market != "spot" || !m.isShown(r.config, c.now) {
			continue
		}
		code, at := m.spot, m.born
		if !m.reclaim.IsZero() {
			at = m.reclaim
		}
		fields := map[string]string{"instance-id": m.id, "spot-instance-request-id": m.spotRequest(),
			"status-code": code}
		fits, err := matchesFilters(c.form, func(name string) ([]string, bool) {
			v, ok := fields[name]
			return []string{v},
				ok
		})
		if err != nil {
			return nil, err
		}
		if fits {
			a.Rows = append(a.Rows, row{ID: m.spotRequest(), Instance: m.id, State: "active",
				Status: spotStatus{Code: code, Message: "Your Spot instance: " + code, At: at.UTC().Format(wireTime)}})
		}
	}
	return a, nil
}

// scheduled is an event that EC2 has announced for a machine.
type scheduled struct {
	id, code, description string
	notBefore             time.Time
}

func (r *Region) describeStatus(c call) (any, error) {
	type event struct {
		Code        string `xml:"code"`
		Description string `xml:"description"`
		NotBefore   string `xml:"notBefore"`
	}
	type row struct {
		ID     string  `xml:"instanceId"`
		Events []event `xml:"eventsSet>item"`
	}
	type answer struct {
		XMLName xml.Name `xml:"DescribeInstanceStatusResponse"`
		Rows    []row    `xml:"instanceStatusSet>item"`
	}
	var a answer
	for _, m := range r.machines {
		if m.stateAt(r.config, c.now) != running {
			continue
		}
		x := row{ID: m.id}
		var codes []string
		for _, e := range r.events {
			if e.id == m.id {
				codes = append(codes, e.code)
				x.Events = append(x.Events, event{Code: e.code, Description: e.description,
					NotBefore: e.notBefore.UTC().Format(wireTime)})
			}
		}
		fits, err := matchesFilters(c.form, func(name string) ([]string, bool) { return codes, name == "event.code" })
		if err != nil {
			return nil, err
		}
		if fits {
			a.Rows = append(a.Rows, x)
		}
	}
	return a, nil
}
