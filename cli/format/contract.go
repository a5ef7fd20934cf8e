package format

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// Shape renders a shape as nodes × GPUs.
func Shape(s contract.Shape) string {
	if s.Nodes == 0 {
		return "-"
	}
	if rest := s.GPUs - (s.Nodes-1)*s.GPUsPerNode; rest != s.GPUsPerNode {
		return fmt.Sprintf("%d×%d+%d", s.Nodes-1, s.GPUsPerNode, rest)
	}
	return fmt.Sprintf("%d×%d", s.Nodes, s.GPUsPerNode)
}

// Source names one place that machines come from.
func Source(provisioner, region, kind string) string {
	return OrDash(strings.Join(slices.DeleteFunc([]string{provisioner, region, kind},
		func(s string) bool { return s == "" }), "/"))
}

// Value is a JSON value as people write it.
func Value(v json.RawMessage) string {
	var text string
	if err := json.Unmarshal(v, &text); err == nil {
		if text == "" {
			return "-"
		}
		return text
	}
	var m contract.Money
	if err := json.Unmarshal(v, &m); err == nil && m.Amount != "" {
		return Money(m)
	}
	if len(v) == 0 || string(v) == "null" {
		return "-"
	}
	var devices []contract.Device
	if err := json.Unmarshal(v, &devices); err == nil && len(devices) > 0 && devices[0].UUID != "" {
		return Devices(devices)
	}
	return string(v)
}

// Devices are the GPUs of an allocation, node by node.
func Devices(all []contract.Device) string {
	var nodes []string
	uuids := map[string]string{}
	for _, d := range all {
		if _, seen := uuids[d.NodeID]; !seen {
			nodes = append(nodes, d.NodeID)
		}
		uuids[d.NodeID] += " " + d.UUID
	}
	for i, n := range nodes {
		nodes[i] = n + ":" + uuids[n]
	}
	return OrDash(strings.Join(nodes, "; "))
}

// Offer says what is offered, where and when.
func Offer(o contract.Offer) string {
	return fmt.Sprintf("%s in %s from %s to %s", Count(o.GPUs, "GPU"), cmp.Or(o.PoolName, o.PoolID), Time(o.Start),
		Time(o.End))
}

// Waits renders how much work waited for something: "15 starts, 42s on average; 2 wait now".
func Waits(x contract.Waits) string {
	text := Count(x.Starts, "start")
	if x.Starts > 0 {
		text += ", " + Duration(time.Duration(x.MeanSeconds*float64(time.Second)).Round(time.Second)) + " on average"
	}
	if x.Waiting > 0 {
		text += fmt.Sprintf("; %d now", x.Waiting)
	}
	return text
}

// Wait shows an interval and what it rests on.
func Wait(x contract.WaitEstimate) string {
	at := func(s float64) string {
		return Duration(time.Duration(s * float64(time.Second)).Round(time.Second))
	}
	return fmt.Sprintf("%s, likely %s to %s (80%%, %s)", at(x.P50Seconds), at(x.P10Seconds), at(x.P90Seconds),
		Plain(x.Basis))
}

// Failure says what fails again and again.
func Failure(f *contract.Failure) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%d in a row, last %s: %s", f.Count, Time(f.LastAt), f.Message)
}

// ReadyIn is an estimate in short: the middle, and where it is four times of five.
func ReadyIn(x *contract.WaitEstimate) string {
	if x == nil {
		return "-"
	}
	if x.P90Seconds < 1 {
		return "now"
	}
	at := func(s float64) string {
		return Duration(time.Duration(s * float64(time.Second)).Round(time.Second))
	}
	return fmt.Sprintf("%s (%s–%s)", at(x.P50Seconds), at(x.P10Seconds), at(x.P90Seconds))
}
