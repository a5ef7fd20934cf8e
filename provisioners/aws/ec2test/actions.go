package ec2test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

type stateChange struct {
	ID     string   `xml:"instanceId"`
	Now    stateRow `xml:"currentState"`
	Before stateRow `xml:"previousState"`
}

// terminateInstances accepts what is over already, for as long as it is shown.
func (r *Region) terminateInstances(c call) (any, error) {
	all, err := r.findMachines(listValues(c.form, "InstanceId"), c.now)
	if err != nil {
		return nil, err
	}
	type answer struct {
		XMLName xml.Name      `xml:"TerminateInstancesResponse"`
		Rows    []stateChange `xml:"instancesSet>item"`
	}
	var a answer
	for _, m := range all {
		before := m.stateAt(r.config, c.now)
		if m.stop.IsZero() && c.fault.Effect != Ignore {
			m.endAt(c.now, "Client.UserInitiatedShutdown", "User initiated shutdown",
				"User initiated ("+c.now.UTC().Format(gmt)+")")
		}
		now := m.stateAt(r.config, c.now)
		if c.fault.Effect == Ignore {
			now = ending
		}
		a.Rows = append(a.Rows, stateChange{ID: m.id, Now: stateRow{stateCodes[now], now},
			Before: stateRow{stateCodes[before], before}})
	}
	return a, nil
}

func (r *Region) createTags(c call) (any, error) {
	all, err := r.findMachines(listValues(c.form, "ResourceId"), c.now.Add(-r.config.TagLag))
	if err != nil {
		return nil, err
	}
	for i := 1; c.form.Has(fmt.Sprintf("Tag.%d.Key", i)); i++ {
		t := tag{key: c.form.Get(fmt.Sprintf("Tag.%d.Key", i)), value: c.form.Get(fmt.Sprintf("Tag.%d.Value", i)),
			at: c.now}
		if !metadataKey.MatchString(t.key) {
			return nil, newRefusal("InvalidParameterValue", "'%s' is not a valid tag key", t.key)
		}
		for _, m := range all {
			m.tags = append(m.tags, t)
		}
	}
	type answer struct {
		XMLName xml.Name `xml:"CreateTagsResponse"`
		Return  bool     `xml:"return"`
	}
	return answer{Return: true}, nil
}

func (r *Region) describeImages(c call) (any, error) {
	type disk struct {
		Device string `xml:"deviceName"`
		Delete bool   `xml:"ebs>deleteOnTermination"`
	}
	type row struct {
		ID    string `xml:"imageId"`
		Root  string `xml:"rootDeviceName"`
		Disks []disk `xml:"blockDeviceMapping>item"`
	}
	type answer struct {
		XMLName xml.Name `xml:"DescribeImagesResponse"`
		Rows    []row    `xml:"imagesSet>item"`
	}
	var a answer
	for _, id := range listValues(c.form, "ImageId") {
		image, known := r.config.findImage(id)
		if !known {
			return nil, newRefusal("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
		}
		x := row{ID: image.ID, Root: image.RootDevice}
		for _, name := range image.Disks {
			x.Disks = append(x.Disks, disk{Device: name, Delete: name == image.RootDevice})
		}
		a.Rows = append(a.Rows, x)
	}
	return a, nil
}

func (r *Region) consoleOutput(c call) (any, error) {
	all, err := r.findMachines([]string{c.form.Get("InstanceId")}, c.now)
	if err != nil {
		return nil, err
	}
	type answer struct {
		XMLName xml.Name `xml:"GetConsoleOutputResponse"`
		ID      string   `xml:"instanceId"`
		At      string   `xml:"timestamp"`
		Output  string   `xml:"output"`
	}
	text := all[0].consoleOutput(r.config, c.now)
	return answer{ID: all[0].id, At: c.now.UTC().Format(wireTime),
		Output: base64.StdEncoding.EncodeToString([]byte(text))}, nil
}

// consoleOutput is what the machine has printed so far, as its user data makes it.
func (m *machine) consoleOutput(c Config, now time.Time) string {
	up := m.born.Add(c.Pending)
	if now.Before(up) {
		return ""
	}
	text := "[    0.000000] Linux version 6.8.0-aws\r\n"
	if now.Before(up.Add(c.Report)) || !strings.Contains(m.userText(), "forewarm-gpus") || len(m.gpus) == 0 {
		return text
	}
	report, _ := json.Marshal(map[string]any{"v": 1, "gpus": m.gpus})
	return text + "forewarm-gpus " + base64.StdEncoding.EncodeToString(report) + "\r\nlogin: "
}
