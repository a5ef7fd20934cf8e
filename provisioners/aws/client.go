//go:build clouds

package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/provisioners"
)

const (
	// maxAttempts of one request, the first one included. A repeated launch
	// carries the same client token.
	maxAttempts = 3
	// requestTimeout bounds one attempt. RunInstances alone has been seen to
	// take 20 s.
	requestTimeout = 30 * time.Second
	maxAnswer      = 16 << 20
)

// newClient reads the credentials' configuration; the credentials themselves are
// fetched by the first call.
func newClient(c Config) (*ec2.Client, sdk.CredentialsProvider, error) {
	options := []func(*config.LoadOptions) error{
		config.WithRegion(c.Region),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(requestTimeout)),
	}
	if c.CredentialsFile != "" {
		options = append(options, config.WithSharedCredentialsFiles([]string{c.CredentialsFile}))
	}
	if c.Profile != "" || c.CredentialsFile != "" { // named, it goes before the environment
		options = append(options, config.WithSharedConfigProfile(cmp.Or(c.Profile, "default")))
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the SDK's configuration: %w", err)
	}
	return ec2.NewFromConfig(loaded, func(o *ec2.Options) {
		o.HTTPClient = limited{next: o.HTTPClient}
		o.Retryer = newRetryer(c.RetryWait, func(error) {})
		o.ClientLogMode = 0 // a log of requests would hold their signatures
		if c.Endpoint != "" {
			o.BaseEndpoint = sdk.String(c.Endpoint)
		}
	}), loaded.Credentials, nil
}

// newRetryer repeats what EC2 answered with its own failure or for being too many,
// and what was not answered at all. A stock-out comes with a status of 500 too:
// it is for the control plane to try again, elsewhere. seen gets the error of
// every attempt.
func newRetryer(wait time.Duration, seen func(error)) sdk.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = maxAttempts, max(wait, time.Nanosecond)
		o.RateLimiter = ratelimit.None // three attempts are the limit
		first := retry.IsErrorRetryableFunc(func(err error) sdk.Ternary { seen(err); return retryDecision(err) })
		o.Retryables = append([]retry.IsErrorRetryable{first}, o.Retryables...)
	})
}

func retryDecision(err error) sdk.Ternary {
	switch kindOf(err) {
	case provisioners.KindUnknown, provisioners.KindThrottled:
		return sdk.UnknownTernary
	default:
		return sdk.FalseTernary
	}
}

// limited bounds the answers.
type limited struct{ next ec2.HTTPClient }

// Do implements ec2.HTTPClient.
func (l limited) Do(req *http.Request) (*http.Response, error) {
	resp, err := l.next.Do(req)
	if err != nil {
		return nil, err // the SDK looks at what it is
	}
	resp.Body = httpx.LimitBody(resp.Body, maxAnswer)
	return resp, nil
}

// beginCall begins a call of the port: it refuses an ended context, bounds the call,
// and makes sure that there are credentials. Without them nothing is asked of
// EC2, which the SDK's own error does not tell apart.
func (p *Provisioner) beginCall(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.CallTimeout)
	if _, err := p.credentials.Retrieve(ctx); err != nil {
		cancel()
		return nil, nil, noCredentials(err)
	}
	return ctx, cancel, nil
}

// noCredentials tells credentials that are missing or refused from a service
// that could not be asked for them.
func noCredentials(err error) error {
	kind := provisioners.KindDenied
	code, _ := errorAnswer(err)
	var network net.Error
	if code == "" && (errors.As(err, &network) || keepContextError(err) != nil) ||
		kindOf(err) == provisioners.KindThrottled {
		kind = provisioners.KindTransient
	}
	return &provisioners.Error{Kind: kind, Message: "getting credentials", Err: httpx.HideURL(err)}
}
