//go:build clouds

package aws

import (
	"cmp"
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/forewarm/forewarm/provisioners"
)

const (
	pageSize = 500
	// maxPages bounds one list. An account with more machines of one owner than
	// pages of these hold gets a list that says it is incomplete.
	maxPages = 100
)

// Get returns the machine with its devices and whatever EC2 announces for it.
func (p *Provisioner) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	ctx, done, err := p.beginCall(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	defer done()
	row, err := p.describeInstance(ctx, id)
	if err != nil {
		return provisioners.Instance{}, err
	}
	return p.completeInstance(ctx, row)
}

// describeInstance asks for one machine. EC2 may deny one for some seconds after it has
// made it, and has been seen to answer nothing at all; neither is proof.
func (p *Provisioner) describeInstance(ctx context.Context, id string) (types.Instance, error) {
	if id == "" { // an empty list of ids would ask for every machine
		return types.Instance{}, provisioners.Errorf(provisioners.KindNotFound, "EC2 has no empty id")
	}
	out, err := p.client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		row, young := p.recentLaunch(id)
		switch {
		case isUnknownInstance(err) && young:
			return row, nil
		case isUnknownInstance(err):
			return types.Instance{}, provisioners.Errorf(provisioners.KindNotFound, "EC2 knows no instance %s", id)
		}
		return types.Instance{}, readError("reading "+id, err)
	}
	for _, reservation := range out.Reservations {
		for _, row := range reservation.Instances {
			if sdk.ToString(row.InstanceId) == id && isUnderstood(row) {
				return row, nil
			}
		}
	}
	return types.Instance{}, provisioners.Errorf(provisioners.KindTransient, "EC2's answer about %s lacks it", id)
}

// List returns the owner's machines, those that ended in the last hour among
// them. Machines whose report this process has not read yet are Booting: Get
// reads it.
func (p *Provisioner) List(ctx context.Context, owner string) (provisioners.List, error) {
	ctx, done, err := p.beginCall(ctx)
	if err != nil {
		return provisioners.List{}, err
	}
	defer done()
	if owner == "" {
		return provisioners.List{Complete: true}, nil // Create makes none
	}
	rows, complete, err := p.readRows(ctx, newFilter("tag:"+tagOwner, owner), types.Filter{
		Name: sdk.String("tag-key"), Values: []string{tagToken},
	})
	if err != nil {
		return provisioners.List{}, err
	}
	rows = slices.DeleteFunc(rows, func(row types.Instance) bool { return tagOf(row, tagOwner) != owner })
	notices, err := p.readNotices(ctx, rows)
	if err != nil {
		return provisioners.List{}, err
	}
	list := provisioners.List{Complete: complete}
	for _, row := range rows {
		list.Instances = append(list.Instances, p.renderRow(row, notices[sdk.ToString(row.InstanceId)]))
	}
	slices.SortFunc(list.Instances, func(a, b provisioners.Instance) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// byToken returns the machine that the token made, nil when EC2 shows none: one
// that stands if there are several.
func (p *Provisioner) byToken(ctx context.Context, token string) (*types.Instance, error) {
	rows, complete, err := p.readRows(ctx, newFilter("client-token", token))
	if err != nil {
		return nil, err
	}
	var found *types.Instance
	for i, row := range rows {
		if sdk.ToString(row.ClientToken) == token && (found == nil || isLive(row)) {
			found = &rows[i]
		}
	}
	if found == nil && !complete {
		return nil, provisioners.Errorf(provisioners.KindTransient, "EC2's answer about a token is incomplete")
	}
	return found, nil
}

// wild are the characters that mean others in a filter.
var wild = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`)

func newFilter(name, value string) types.Filter {
	return types.Filter{Name: sdk.String(name), Values: []string{wild.Replace(value)}}
}

// readRows reads all pages. It is complete when there was a last one and every row
// was understood.
func (p *Provisioner) readRows(ctx context.Context, filters ...types.Filter) ([]types.Instance, bool, error) {
	byID, complete := map[string]types.Instance{}, true
	input := &ec2.DescribeInstancesInput{Filters: filters, MaxResults: sdk.Int32(pageSize)}
	for range maxPages {
		out, err := p.client.DescribeInstances(ctx, input)
		if err != nil {
			return nil, false, readError("listing instances", err)
		}
		for _, reservation := range out.Reservations {
			for _, row := range reservation.Instances {
				if !isUnderstood(row) {
					complete = false
					continue
				}
				byID[sdk.ToString(row.InstanceId)] = row // a row may move from one page to the next
			}
		}
		next := sdk.ToString(out.NextToken)
		if next == "" {
			return valuesOf(byID), complete, nil
		}
		if next == sdk.ToString(input.NextToken) {
			break
		}
		input.NextToken = out.NextToken
	}
	return valuesOf(byID), false, nil
}

func valuesOf(byID map[string]types.Instance) []types.Instance {
	var all []types.Instance
	for _, row := range byID {
		all = append(all, row)
	}
	return all
}
