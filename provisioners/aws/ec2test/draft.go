package ec2test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// draftMachine reads a request and refuses what no machine could be made of.
func (r *Region) draftMachine(c call) (*machine, error) {
	form := c.form
	m := &machine{
		token: form.Get("ClientToken"), image: form.Get("ImageId"), subnet: form.Get("SubnetId"),
		key:  form.Get("KeyName"),
		zone: form.Get("Placement.AvailabilityZone"), userData: form.Get("UserData"), market: marketOf(form),
		reservation: form.Get("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"),
		born:        c.now.Truncate(time.Second),
	}
	if form.Get("MinCount") != "1" || form.Get("MaxCount") != "1" {
		return nil, newRefusal("InvalidParameterValue", "the fake launches one instance at a time")
	}
	if len(m.token) > 64 {
		return nil, newRefusal("InvalidParameterValue",
			"Value (%s) for parameter clientToken is invalid. The string must have at most 64 characters.", m.token)
	}
	for _, check := range []func(*machine, url.Values) error{r.checkType, r.checkPlace, r.checkDisks, checkUserData,
		checkTags} {
		if err := check(m, form); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func marketOf(form url.Values) string {
	if market := form.Get("InstanceMarketOptions.MarketType"); market != "" {
		return market
	}
	return "on-demand"
}

func (r *Region) checkType(m *machine, form url.Values) error {
	kind, known := r.config.findType(form.Get("InstanceType"))
	if !known {
		return newRefusal("InvalidParameterValue", "Invalid value '%s' for InstanceType.", form.Get("InstanceType"))
	}
	m.kind = kind
	for i := range kind.GPUs {
		m.gpus = append(m.gpus, GPU{Index: i, Name: kind.GPU, MemoryMiB: kind.MemoryMiB, ECC: new(uint64)})
	}
	return nil
}

func (r *Region) checkPlace(m *machine, form url.Values) error {
	if m.subnet != "" {
		zone, known := r.config.Subnets[m.subnet]
		if !known {
			return newRefusal("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", m.subnet)
		}
		if m.zone != "" && m.zone != zone {
			return newRefusal("InvalidParameterCombination", "subnet %s is not in %s", m.subnet, m.zone)
		}
		m.zone = zone
	}
	if m.zone == "" {
		m.zone = r.config.Zones[0]
	}
	if !slices.Contains(r.config.Zones, m.zone) {
		return newRefusal("InvalidParameterValue", "Invalid availability zone: [%s]", m.zone)
	}
	for _, group := range listValues(form, "SecurityGroupId") {
		if !slices.Contains(r.config.Groups, group) {
			return newRefusal("InvalidGroup.NotFound", "The security group '%s' does not exist", group)
		}
	}
	return nil
}

// checkDisks refuses a disk that the image does not have: EC2 would add one,
// which is not what anybody here means.
func (r *Region) checkDisks(m *machine, form url.Values) error {
	image, known := r.config.findImage(m.image)
	if !known {
		return newRefusal("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", m.image)
	}
	for i := 1; form.Has(fmt.Sprintf("BlockDeviceMapping.%d.DeviceName", i)); i++ {
		name := form.Get(fmt.Sprintf("BlockDeviceMapping.%d.DeviceName", i))
		if !slices.Contains(image.Disks, name) {
			return newRefusal("InvalidBlockDeviceMapping", "%s is no device of %s", name, image.ID)
		}
		if form.Get(fmt.Sprintf("BlockDeviceMapping.%d.Ebs.DeleteOnTermination", i)) == "true" {
			m.ephemeral = append(m.ephemeral, name)
		}
	}
	return nil
}

func checkUserData(m *machine, _ url.Values) error {
	data, err := base64.StdEncoding.DecodeString(m.userData)
	if err != nil {
		return newRefusal("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data")
	}
	if len(data) > 16_384 {
		return newRefusal("InvalidParameterValue", "User data is limited to 16384 bytes")
	}
	return nil
}

var metadataKey = regexp.MustCompile(`^[A-Za-z0-9+\-=._:@,]+$`)

func checkTags(m *machine, form url.Values) error {
	inMetadata := form.Get("MetadataOptions.InstanceMetadataTags") == "enabled"
	for i := 1; form.Has(fmt.Sprintf("TagSpecification.%d.ResourceType", i)); i++ {
		prefix := fmt.Sprintf("TagSpecification.%d", i)
		for j := 1; form.Has(fmt.Sprintf("%s.Tag.%d.Key", prefix, j)); j++ {
			t := tag{key: form.Get(fmt.Sprintf("%s.Tag.%d.Key", prefix, j)),
				value: form.Get(fmt.Sprintf("%s.Tag.%d.Value", prefix, j)), at: m.born}
			if inMetadata && !metadataKey.MatchString(t.key) {
				return newRefusal("InvalidParameterValue",
					"'%s' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{1,255})", t.key)
			}
			if form.Get(prefix+".ResourceType") == "instance" {
				m.tags = append(m.tags, t)
			}
		}
	}
	return nil
}

// listValues reads the values Name.1, Name.2 and so on.
func listValues(form url.Values, name string) []string {
	var all []string
	for i := 1; form.Has(name + "." + strconv.Itoa(i)); i++ {
		all = append(all, form.Get(name+"."+strconv.Itoa(i)))
	}
	return all
}

// addressWith is made from the id, so that no two machines share one.
func (m *machine) addressWith(prefix string) string {
	n, _ := strconv.ParseUint(m.id[2:], 16, 64)
	return fmt.Sprintf("%s.%d.%d.%d", prefix, n>>16&255, n>>8&255, n&255)
}
