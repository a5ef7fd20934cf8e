//go:build clouds

package aws

import (
	"context"
	"encoding/base64"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws/guest"
	"github.com/forewarm/forewarm/provisioners/bootscript"
)

// buildRequest is the launch of a machine. It is the same for the same token and
// spec, or EC2 would refuse the repetition: no time, no chance, and not the end
// of the machine.
func (p *Provisioner) buildRequest(ctx context.Context, w want) (*ec2.RunInstancesInput, error) {
	disks, err := p.diskMappings(ctx, w.offer.ImageID)
	if err != nil {
		return nil, err
	}
	userData, err := p.userData(w.spec)
	if err != nil {
		return nil, err
	}
	input := &ec2.RunInstancesInput{
		MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), ClientToken: sdk.String(w.token),
		ImageId: sdk.String(w.offer.ImageID), InstanceType: types.InstanceType(w.offer.InstanceType),
		UserData: sdk.String(userData), BlockDeviceMappings: disks,
		// The guest powers the machine off, which must end it.
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate,
		MetadataOptions: &types.InstanceMetadataOptionsRequest{
			HttpTokens: types.HttpTokensStateRequired, HttpEndpoint: types.InstanceMetadataEndpointStateEnabled,
			InstanceMetadataTags: types.InstanceMetadataTagsStateEnabled,
		},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: w.instanceTags()},
			{ResourceType: types.ResourceTypeVolume, Tags: w.instanceTags()},
		},
	}
	p.setPlacement(input, w.offer)
	w.offer.setMarket(input)
	return input, nil
}

func (p *Provisioner) setPlacement(input *ec2.RunInstancesInput, o Offer) {
	if o.Subnet != "" {
		input.SubnetId = sdk.String(o.Subnet)
	}
	if o.Zone != "" && o.Subnet == "" {
		input.Placement = &types.Placement{AvailabilityZone: sdk.String(o.Zone)}
	}
	input.SecurityGroupIds = p.config.SecurityGroups
	if p.config.KeyName != "" {
		input.KeyName = sdk.String(p.config.KeyName)
	}
	if profile := p.config.InstanceProfile; strings.HasPrefix(profile, "arn:") {
		input.IamInstanceProfile = &types.IamInstanceProfileSpecification{Arn: sdk.String(profile)}
	} else if profile != "" {
		input.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: sdk.String(profile)}
	}
}

// setMarket chooses the market.
func (o Offer) setMarket(input *ec2.RunInstancesInput) {
	switch o.Market {
	case Spot:
		spot := &types.SpotMarketOptions{
			SpotInstanceType:             types.SpotInstanceTypeOneTime,
			InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate,
		}
		if o.MaxSpotPrice != nil {
			spot.MaxPrice = sdk.String(money.MicroUSD(*o.MaxSpotPrice).Decimal())
		}
		input.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot,
			SpotOptions: spot}
	case CapacityBlock:
		input.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeCapacityBlock}
	}
	if o.ReservationID != "" {
		input.CapacityReservationSpecification = &types.CapacityReservationSpecification{
			CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: sdk.String(o.ReservationID)},
		}
	}
}

// userData is that of a machine, in base64. With a daemon it has the machine's join token.
func (p *Provisioner) userData(spec provisioners.Spec) (string, error) {
	document, err := p.config.renderUserData(p.extra, spec)
	if err != nil {
		return "", provisioners.Errorf(provisioners.KindBadSpec, "%v", err)
	}
	return base64.StdEncoding.EncodeToString(document), nil
}

func (c Config) renderUserData(extra []byte, spec provisioners.Spec) ([]byte, error) {
	var daemon string
	if c.Daemon.Starts() && spec.Daemon.URL != "" {
		var err error
		if daemon, err = bootscript.Render(c.Daemon, spec.NodeID, spec.Daemon); err != nil {
			return nil, err
		}
	}
	return guest.UserData(c.UnclaimedAfter, extra, daemon)
}

// readExtra reads the operator's own user data, and refuses what would not fit beside ours.
func (c Config) readExtra() ([]byte, error) {
	var extra []byte
	var err error
	if c.UserDataFile != "" {
		if extra, err = readFile(c.UserDataFile); err != nil {
			return nil, err
		}
	}
	_, err = c.renderUserData(extra, longestSpec())
	return extra, err
}

// longestSpec is one whose script of the daemon is as long as any will be.
func longestSpec() provisioners.Spec {
	long := strings.Repeat("x", 128)
	program := provisioners.DaemonProgram{URL: "https://" + long, SHA256: long[:64]}
	return provisioners.Spec{NodeID: long[:32], Daemon: provisioners.Daemon{URL: "https://" + long,
		Token: provisioners.JoinToken(long), Programs: provisioners.DaemonPrograms{AMD64: program, ARM64: program,
			StaticAMD64: program, StaticARM64: program}}}
}

// image is what the request needs to know of a machine image, which never
// changes.
type image struct {
	root  string
	disks []string // its EBS volumes
}

// diskMappings makes every volume of the image end with the machine: an image may say
// otherwise, and volumes that are left behind are billed for ever.
func (p *Provisioner) diskMappings(ctx context.Context, id string) ([]types.BlockDeviceMapping, error) {
	known, err := p.describeImage(ctx, id)
	if err != nil {
		return nil, err
	}
	var all []types.BlockDeviceMapping
	for _, device := range known.disks {
		ebs := &types.EbsBlockDevice{DeleteOnTermination: sdk.Bool(true)}
		if device == known.root && p.config.RootVolumeGiB > 0 {
			ebs.VolumeSize = sdk.Int32(p.config.RootVolumeGiB)
		}
		all = append(all, types.BlockDeviceMapping{DeviceName: sdk.String(device), Ebs: ebs})
	}
	return all, nil
}

func (p *Provisioner) describeImage(ctx context.Context, id string) (image, error) {
	p.mu.Lock()
	known, found := p.images[id]
	p.mu.Unlock()
	if found {
		return known, nil
	}
	out, err := p.client.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
	if err != nil {
		return image{}, readError("reading image "+id, err)
	}
	if len(out.Images) != 1 {
		return image{}, provisioners.Errorf(provisioners.KindBadSpec, "there is no image %s here", id)
	}
	known.root = sdk.ToString(out.Images[0].RootDeviceName)
	for _, disk := range out.Images[0].BlockDeviceMappings {
		if disk.Ebs != nil && sdk.ToString(disk.DeviceName) != "" {
			known.disks = append(known.disks, sdk.ToString(disk.DeviceName))
		}
	}
	p.mu.Lock()
	p.images[id] = known
	p.mu.Unlock()
	return known, nil
}
