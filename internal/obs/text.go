package obs

import (
	"regexp"
	"sync"
)

// secrets are the forms in which programs that we do not know, such as a
// provider's tools, print what they should not: each keeps its two groups. They are compiled when
// they are needed first: the daemon of a node starts itself with each job.
var secrets = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*-----|$)()`),
		regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s@]+(@)`),
		regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}()`),
		regexp.MustCompile(`(?i)((?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|` +
			`credentials?)[\w-]*["']?\s*[:=]\s*["']?)[^\s"',;&]+()`),
		regexp.MustCompile(`()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b()`),
	}
})

// ScrubText returns text of somebody else, such as a tool's standard error, without
// what looks like a secret: passwords in URLs and assignments, tokens, private keys.
func ScrubText(text string) string {
	for _, form := range secrets() {
		text = form.ReplaceAllString(text, "${1}"+redacted+"${2}")
	}
	return text
}
