package obs

import (
	"net/url"
	"strings"
)

// ScrubURL returns raw without user-info, query and fragment, for logs and
// errors. What cannot be read with certainty becomes "***": a connection string
// that is not a URL, or a password with an unescaped "/", "?" or "#", which ends
// up outside the user-info.
func ScrubURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		return redacted
	}
	signs := strings.Count(raw, "@")
	if u.User == nil && signs > 0 || u.User != nil && strings.Contains(u.EscapedPath()+u.RawQuery+u.Fragment, "@") {
		return redacted
	}
	if u.Opaque != "" {
		return u.Scheme + ":" + redacted
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
