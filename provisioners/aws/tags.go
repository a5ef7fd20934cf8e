//go:build clouds

package aws

import (
	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The tags of a machine and its volumes. Instance metadata serves only keys
// without a slash and a space.
const (
	tagOwner = "forewarm:owner"
	tagNode  = "forewarm:node"
	tagToken = "forewarm:token"
	tagType  = "forewarm:type"
	tagName  = "Name"
)

func (w want) instanceTags() []types.Tag {
	var tags []types.Tag
	for _, t := range [][2]string{
		{tagName, "forewarm " + w.spec.NodeID}, {tagOwner, w.spec.Owner}, {tagNode, w.spec.NodeID},
		{tagToken, w.token}, {tagType, w.spec.Type},
	} {
		tags = append(tags, types.Tag{Key: sdk.String(t[0]), Value: sdk.String(t[1])})
	}
	return tags
}

func tagOf(instance types.Instance, key string) string {
	for _, t := range instance.Tags {
		if sdk.ToString(t.Key) == key {
			return sdk.ToString(t.Value)
		}
	}
	return ""
}
