//go:build clouds

package aws

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/provisioners"
)

// The codes that mean what another code means too are in kinds; these have a
// meaning of their own.
const (
	codeMismatch   = "IdempotentParameterMismatch"
	codeTerminated = "IdempotentInstanceTerminated"
	codeNotFound   = "InvalidInstanceID.NotFound"
	codeMalformed  = "InvalidInstanceID.Malformed"
)

// kinds sorts EC2's codes. InsufficientInstanceCapacity and its like come with a
// status of 500, so that the code is looked at first. A code that is not here
// says nothing for sure.
var kinds = map[string]provisioners.Kind{
	"InsufficientInstanceCapacity":         provisioners.KindCapacity,
	"InsufficientCapacity":                 provisioners.KindCapacity,
	"InsufficientHostCapacity":             provisioners.KindCapacity,
	"InsufficientCapacityOnHost":           provisioners.KindCapacity,
	"InsufficientReservedInstanceCapacity": provisioners.KindCapacity,
	"InsufficientVolumeCapacity":           provisioners.KindCapacity,
	"InsufficientAddressCapacity":          provisioners.KindCapacity,
	"InsufficientFreeAddressesInSubnet":    provisioners.KindCapacity,
	"UnfulfillableCapacity":                provisioners.KindCapacity,
	"ReservationCapacityExceeded":          provisioners.KindCapacity,
	"Unsupported":                          provisioners.KindCapacity, // the type is not in the zone
	"SpotMaxPriceTooLow":                   provisioners.KindCapacity, // for what we would pay

	"VcpuLimitExceeded":             provisioners.KindQuota,
	"InstanceLimitExceeded":         provisioners.KindQuota,
	"MaxSpotInstanceCountExceeded":  provisioners.KindQuota, // the account's, not the market's
	"MaxFleetCountExceeded":         provisioners.KindQuota,
	"VolumeLimitExceeded":           provisioners.KindQuota,
	"MaxIOPSLimitExceeded":          provisioners.KindQuota,
	"MaxConfigLimitExceededFault":   provisioners.KindQuota,
	"NetworkInterfaceLimitExceeded": provisioners.KindQuota,
	"AddressLimitExceeded":          provisioners.KindQuota,

	"RequestLimitExceeded":      provisioners.KindThrottled,
	"Throttling":                provisioners.KindThrottled,
	"ThrottlingException":       provisioners.KindThrottled,
	"ThrottledException":        provisioners.KindThrottled,
	"EC2ThrottledException":     provisioners.KindThrottled,
	"RequestThrottled":          provisioners.KindThrottled,
	"RequestThrottledException": provisioners.KindThrottled,
	"BandwidthLimitExceeded":    provisioners.KindThrottled,
	"TooManyRequestsException":  provisioners.KindThrottled,
	"SlowDown":                  provisioners.KindThrottled,

	"UnauthorizedOperation":       provisioners.KindDenied,
	"AuthFailure":                 provisioners.KindDenied,
	"AccessDenied":                provisioners.KindDenied,
	"AccessDeniedException":       provisioners.KindDenied,
	"ExpiredToken":                provisioners.KindDenied,
	"ExpiredTokenException":       provisioners.KindDenied,
	"RequestExpired":              provisioners.KindDenied, // this machine's clock is wrong
	"OptInRequired":               provisioners.KindDenied,
	"PendingVerification":         provisioners.KindDenied,
	"Blocked":                     provisioners.KindDenied,
	"InvalidClientTokenId":        provisioners.KindDenied, // of the credentials, not of a launch
	"InvalidAccessKeyId":          provisioners.KindDenied,
	"MissingAuthenticationToken":  provisioners.KindDenied,
	"SignatureDoesNotMatch":       provisioners.KindDenied,
	"IncompleteSignature":         provisioners.KindDenied,
	"UnrecognizedClientException": provisioners.KindDenied,
	"OperationNotPermitted":       provisioners.KindDenied, // such as protection from termination

	"MissingParameter":          provisioners.KindBadSpec,
	"MissingInput":              provisioners.KindBadSpec,
	"UnknownParameter":          provisioners.KindBadSpec,
	"UnsupportedOperation":      provisioners.KindBadSpec,
	"InvalidInput":              provisioners.KindBadSpec,
	"InvalidCharacter":          provisioners.KindBadSpec,
	"InvalidAvailabilityZone":   provisioners.KindBadSpec,
	"InvalidBlockDeviceMapping": provisioners.KindBadSpec,
	"InvalidRequest":            provisioners.KindBadSpec,
	"ValidationError":           provisioners.KindBadSpec,
	"VPCIdNotSpecified":         provisioners.KindBadSpec,
	"InvalidAction":             provisioners.KindBadSpec,
}

// badFamilies are the beginnings of codes that name a wrong part of a request.
var badFamilies = []string{
	"InvalidParameter", "InvalidAMI", "InvalidSubnet", "InvalidGroup", "InvalidSecurityGroup", "InvalidKeyPair",
	"InvalidCapacityReservationId", "InvalidIamInstanceProfile", "InvalidInstanceType", "InvalidUserData",
	"InvalidSnapshot",
	"InvalidZone", "InvalidPlacementGroup", "InvalidTagKey", "InvalidVpcID",
}

// kindOf sorts an answer of EC2; it returns KindUnknown for what is no answer,
// and for one that says nothing for sure.
func kindOf(err error) provisioners.Kind {
	code, _ := errorAnswer(err)
	if kind, known := kinds[code]; known {
		return kind
	}
	for _, family := range badFamilies {
		if strings.HasPrefix(code, family) {
			return provisioners.KindBadSpec
		}
	}
	return provisioners.KindUnknown
}

// errorAnswer returns the code and the words of EC2's refusal, both empty when err is
// none.
func errorAnswer(err error) (code, message string) {
	var refusal smithy.APIError
	if !errors.As(err, &refusal) {
		return "", ""
	}
	return refusal.ErrorCode(), refusal.ErrorMessage()
}

// readError is the error of a call that changes nothing: what is not known of it
// can simply be asked again.
func readError(doing string, err error) error {
	return newFailure(doing, err, provisioners.KindTransient)
}

// writeError is the error of a call that may have had its effect.
func writeError(doing string, err error) error {
	return newFailure(doing, err, provisioners.KindUnknown)
}

func newFailure(doing string, err error, unknown provisioners.Kind) *provisioners.Error {
	kind := kindOf(err)
	if kind == provisioners.KindUnknown {
		kind = unknown
	}
	code, message := errorAnswer(err)
	if code == "" {
		return &provisioners.Error{Kind: kind, Message: doing, Err: httpx.HideURL(err)}
	}
	return &provisioners.Error{Kind: kind, Message: doing + ": " + code + ": " + message, RetryAfter: retryAfter(err),
		Err: keepContextError(err)}
}

// unknownError is the error of a call after which a machine may exist, whatever EC2's
// last answer was.
func unknownError(doing string, err error) error {
	e := newFailure(doing, err, provisioners.KindUnknown)
	e.Kind = provisioners.KindUnknown
	return e
}

// keepContextError keeps the end of a context visible behind an answer that came before it.
func keepContextError(err error) error {
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			return cause
		}
	}
	return nil
}

// retryAfter is zero where the answer does not say, as EC2's do not.
func retryAfter(err error) time.Duration {
	var response *awshttp.ResponseError
	if !errors.As(err, &response) || response.Response == nil {
		return 0
	}
	seconds, err := strconv.Atoi(response.Response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 3600 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// launchError is the error of RunInstances, with the supply or the limit that it
// speaks of.
func launchError(o Offer, err error) error {
	e := newFailure("launching "+o.Type, err, provisioners.KindUnknown)
	code, _ := errorAnswer(err)
	switch {
	case e.Kind == provisioners.KindCapacity && code == "InsufficientFreeAddressesInSubnet":
		e.Scope = o.Subnet
	case e.Kind == provisioners.KindCapacity:
		e.Scope = o.supplyScope()
	case e.Kind == provisioners.KindQuota:
		e.Scope = quotaName(code, o)
	}
	return e
}

// quotaName names the account's limit. EC2 counts vCPUs per family of types, apart
// for the spot market.
func quotaName(code string, o Offer) string {
	family, _, _ := strings.Cut(o.InstanceType, ".")
	family = family[:cmp.Or(max(0, strings.IndexAny(family, "0123456789-")), len(family))]
	switch code {
	case "VcpuLimitExceeded":
		return "vcpus/" + family + "/" + string(o.Market)
	case "InstanceLimitExceeded":
		return "instances/" + o.InstanceType
	case "MaxSpotInstanceCountExceeded":
		return "spot/" + family
	}
	return code
}

// isUnknownInstance reports whether err says that EC2 knows no such instance.
func isUnknownInstance(err error) bool {
	code, _ := errorAnswer(err)
	return code == codeNotFound || code == codeMalformed
}
