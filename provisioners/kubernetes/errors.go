//go:build clouds

package kubernetes

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// readError types the failure of a call that creates nothing.
func readError(err error, format string, args ...any) error {
	return typeError(err, provisioners.KindTransient, fmt.Sprintf(format, args...))
}

// writeError types the failure of a call that creates an object which is no machine
// and makes none.
func writeError(err error, format string, args ...any) error {
	otherwise := provisioners.KindTransient
	if isPermanent(err) {
		otherwise = provisioners.KindBadSpec
	}
	return typeError(err, otherwise, fmt.Sprintf(format, args...))
}

// refusedMachine types the failure of the one call that may have made a machine.
func refusedMachine(err error, format string, args ...any) error {
	otherwise := provisioners.KindUnknown
	var dial *net.OpError
	switch {
	case isPermanent(err):
		otherwise = provisioners.KindBadSpec
	case errors.As(err, &dial) && dial.Op == "dial": // nothing was ever sent
		otherwise = provisioners.KindTransient
	}
	return typeError(err, otherwise, fmt.Sprintf(format, args...))
}

func typeError(err error, otherwise provisioners.Kind, doing string) error {
	var known *provisioners.Error
	if errors.As(err, &known) {
		return err
	}
	e := &provisioners.Error{Kind: otherwise, Message: doing, Err: err}
	quota := exceededQuota(err)
	switch {
	case apierrors.IsTooManyRequests(err):
		e.Kind, e.RetryAfter = provisioners.KindThrottled, suggestedDelay(err)
	case quota != "":
		e.Kind, e.Scope = provisioners.KindQuota, quota
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		e.Kind = provisioners.KindDenied
	}
	return e
}

var quotaPattern = regexp.MustCompile(`exceeded quota: ([^,\s]+)`)

// exceededQuota returns the ResourceQuota that is full. The API server has no reason
// code for it, only the words of a Forbidden.
func exceededQuota(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	found := quotaPattern.FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	return found[1]
}

func suggestedDelay(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// isPermanent reports whether the request can never succeed as it is. A NotFound
// of a call that creates speaks of its namespace, or of a kind that the cluster
// does not have.
func isPermanent(err error) bool {
	return ofServer(err) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err) ||
		apierrors.IsUnsupportedMediaType(err) ||
		apierrors.IsRequestEntityTooLargeError(err))
}

// isNotFound reports whether the API server itself said that there is no object of
// this name. A proxy's 404 is no proof.
func isNotFound(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || !ofServer(err) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name
}

// ofServer reports whether the API server wrote the answer, and not something
// between it and us.
func ofServer(err error) bool {
	return !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
