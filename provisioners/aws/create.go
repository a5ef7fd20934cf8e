//go:build clouds

package aws

import (
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws/guest"
)

// Create launches an instance, or returns the one that the token made.
//
// The token's machine is looked for first: EC2 keeps a token to itself in one
// zone, so that an offer which moved to another zone would make a second
// machine, and it forgets the id of one that ended more than an hour ago.
func (p *Provisioner) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	ctx, done, err := p.beginCall(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	defer done()
	if err := p.checkRequest(token, spec); err != nil {
		return provisioners.Instance{}, err
	}
	w := want{token: token, spec: spec}
	if found, err := p.byToken(ctx, token); err != nil || found != nil {
		return p.checkTaken(ctx, w, found, err)
	}
	offer, known := p.findOffer(spec.Type)
	if !known {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindBadSpec, "no offer %q", spec.Type)
	}
	w.offer = offer
	return p.launchInstance(ctx, w)
}

// want is one machine that was asked for.
type want struct {
	token string
	spec  provisioners.Spec
	offer Offer
}

const (
	maxToken = 64  // characters of a ClientToken
	maxTag   = 240 // of the 256 of a tag, since one has a word before it
)

// checkRequest refuses what EC2 would refuse, before anything is asked.
func (p *Provisioner) checkRequest(token string, spec provisioners.Spec) error {
	if err := spec.Check(token); err != nil {
		return err
	}
	if len(token) > maxToken || slices.ContainsFunc([]byte(token), func(b byte) bool { return b <= ' ' || b > '~' }) {
		return provisioners.Errorf(provisioners.KindBadSpec, "a token has at most %d printable ASCII characters",
			maxToken)
	}
	if len(spec.Owner) > maxTag || len(spec.NodeID) > maxTag {
		return provisioners.Errorf(provisioners.KindBadSpec, "an owner or a node has at most %d characters", maxTag)
	}
	if spec.Region != "" && spec.Region != p.config.Region {
		return provisioners.Errorf(provisioners.KindBadSpec, "this provisioner is for region %s, not %s",
			p.config.Region, spec.Region)
	}
	return nil
}

func (p *Provisioner) launchInstance(ctx context.Context, w want) (provisioners.Instance, error) {
	if err := w.offer.checkWindow(p.clock.Now()); err != nil {
		return provisioners.Instance{}, err
	}
	input, err := p.buildRequest(ctx, w)
	if err != nil {
		return provisioners.Instance{}, err
	}
	doubt := false
	out, err := p.client.RunInstances(ctx, input, func(o *ec2.Options) {
		o.Retryer = newRetryer(p.config.RetryWait, func(err error) {
			doubt = doubt ||
				kindOf(err) == provisioners.KindUnknown
		})
	})
	switch code, _ := errorAnswer(err); {
	case code == codeMismatch || code == codeTerminated:
		return p.findSpent(ctx, w, code)
	case err != nil && doubt: // an attempt before this answer may have made it
		return provisioners.Instance{}, unknownError("launching "+w.offer.Type, err)
	case err != nil:
		return provisioners.Instance{}, launchError(w.offer, err)
	case len(out.Instances) != 1 || sdk.ToString(out.Instances[0].InstanceId) == "":
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindUnknown,
			"launching %s: the answer has no instance", w.offer.Type)
	}
	made := out.Instances[0]
	if len(made.Tags) == 0 { // the answer to a repeated token may lack them; the token vouches for them
		made.Tags = w.instanceTags()
	}
	p.rememberLaunch(made)
	return p.writeExpiry(ctx, w, made)
}

// findSpent finds the machine of a token that EC2 will not take again: it has ended,
// or the offer has changed since it was made.
func (p *Provisioner) findSpent(ctx context.Context, w want, code string) (provisioners.Instance, error) {
	found, err := p.byToken(ctx, w.token)
	if err != nil || found != nil {
		return p.checkTaken(ctx, w, found, err)
	}
	if code == codeTerminated {
		return w.forgottenInstance(), nil
	}
	return provisioners.Instance{}, provisioners.Errorf(provisioners.KindUnknown,
		"launching %s: the token has made a machine that is not to be seen, and the offer has changed since",
		w.offer.Type)
}

// forgottenInstance is the machine that EC2 calls terminated without saying which it
// was. Its id is one that no instance can have.
func (w want) forgottenInstance() provisioners.Instance {
	return provisioners.Instance{
		ID: "ended-" + w.token, Token: w.token, Owner: w.spec.Owner, NodeID: w.spec.NodeID, Type: w.spec.Type,
		Phase: provisioners.Terminated,
	}
}

// checkTaken answers with the token's machine if it is the one that is asked for.
func (p *Provisioner) checkTaken(ctx context.Context, w want, found *types.Instance,
	err error) (provisioners.Instance, error) {
	if err != nil {
		return provisioners.Instance{}, err
	}
	owner, node, kind := tagOf(*found, tagOwner), tagOf(*found, tagNode), tagOf(*found, tagType)
	if owner != w.spec.Owner || node != w.spec.NodeID || kind != w.spec.Type {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindBadSpec,
			"the token was used for type %q, node %q of %q", kind, node, owner)
	}
	return p.writeExpiry(ctx, w, *found)
}

// writeExpiry tells a machine its end, unless it knows one, and answers with it.
// Failing is KindUnknown, whatever the reason: the machine exists.
func (p *Provisioner) writeExpiry(ctx context.Context, w want, made types.Instance) (provisioners.Instance, error) {
	if isLive(made) && tagOf(made, guest.ExpiryTag) == "" && !p.hasExpiry(made) {
		if err := p.tagExpiry(ctx, sdk.ToString(made.InstanceId), guest.Expiry(w.spec.ExpiresAt)); err != nil {
			return provisioners.Instance{}, unknownError("telling the new machine its end", err)
		}
		p.setClaimed(made)
	}
	answered, err := p.completeInstance(ctx, made)
	if err != nil { // it exists, which is the answer; the rest is for Get to say
		return p.renderRow(made, nil), nil
	}
	return answered, nil
}

// tagExpiry also waits for a new machine that cannot be tagged yet.
func (p *Provisioner) tagExpiry(ctx context.Context, id, value string) error {
	_, err := p.client.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: []string{id}, Tags: []types.Tag{{Key: sdk.String(guest.ExpiryTag), Value: sdk.String(value)}},
	}, func(o *ec2.Options) { o.Retryer = retry.AddWithErrorCodes(o.Retryer, codeNotFound) })
	return err
}
