package redact

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"math"
	"regexp"
	"slices"
	"strings"
)

// isOrderly keeps long words that do not look random: names, versions, paths. A
// random text has many different characters (Shannon entropy) and changes often
// between capitals, small letters and digits; "train_resnet50_batch256" does not.
func isOrderly(match, _ string) bool {
	for from, to := range inPart.findRuns(match, 16) {
		if isUnspeakable(match[from:to]) {
			return false
		}
	}
	if len(match) < 20 && strings.ContainsAny(match, "/=._-") {
		return true
	}
	return classChangeRate(match) < 0.25 || entropy(match) < 3 || hexWord.MatchString(match)
}

// inPart are the characters of the rule for random words but those that divide the parts of a name or path.
var inPart = setOf(letters + digits + "+~")

// hexWord matches what the rules for hex and UUIDs decide about.
var hexWord = regexp.MustCompile(`(?i)^(?:[a-z_]+=)?(?:[0-9a-f]{32,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// isUnspeakable reports whether a word has five consonants in a row twice, or seven once: words of
// no language that logs are written in do, and a random text nearly always does.
func isUnspeakable(word string) bool {
	row, fives := 0, 0
	for i := range len(word) {
		if !consonants.has(word[i]) {
			row = 0
			continue
		}
		if row++; row == 5 {
			fives++
		}
		if row == 7 || fives == 2 {
			return true
		}
	}
	return false
}

var consonants = setOf("bcdfghjklmnpqrstvwxzBCDFGHJKLMNPQRSTVWXZ")

// entropy is the Shannon entropy of the bytes of s, in bits per byte.
func entropy(s string) float64 {
	var seen [256]int
	for i := range len(s) {
		seen[s[i]]++
	}
	bits := 0.0
	for _, n := range seen {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// camelCase matches words put together as names of types are: "OutOfMemoryError".
var camelCase = regexp.MustCompile(`^[a-z]*(?:[A-Z][a-z]+)+$`)

// wordsTogether reports whether s is put together of words, of 3.5 letters at the mean: in random
// letters every other one is a capital.
func wordsTogether(s string) bool {
	capitals := 0
	for i := range len(s) {
		if classOf(s[i]) == 1 {
			capitals++
		}
	}
	return capitals > 0 && 2*len(s) >= 7*capitals && camelCase.MatchString(s)
}

// classChangeRate is the share of neighbouring letters and digits of s that are of
// different classes: capital, small, digit. A path or name is judged by its most
// random part of 16 characters or more.
func classChangeRate(s string) float64 {
	for from, to := range inPart.findRuns(s, 8) {
		if wordsTogether(s[from:to]) {
			s = s[:from] + strings.ToLower(s[from:to]) + s[to:]
		}
	}
	most := classChangeShare(s)
	for from, to := range inPart.findRuns(s, 16) {
		most = max(most, classChangeShare(s[from:to]))
	}
	return most
}

func classChangeShare(s string) float64 {
	pairs, changed := 0, 0
	last := 0
	for i := range len(s) {
		c := classOf(s[i])
		if c == 0 {
			continue
		}
		if last != 0 {
			pairs++
			if c != last {
				changed++
			}
		}
		last = c
	}
	if pairs == 0 {
		return 0
	}
	return float64(changed) / float64(pairs)
}

// classOf is 1 for capitals, 2 for small letters, 3 for digits, else 0.
func classOf(b byte) int {
	switch {
	case b >= 'A' && b <= 'Z':
		return 1
	case b >= 'a' && b <= 'z':
		return 2
	case b >= '0' && b <= '9':
		return 3
	}
	return 0
}

// short matches what may be a password in base64 or hex: few other words are text when decoded.
var short = regexp.MustCompile(`(?:^|[\s"'=:])([A-Za-z0-9+/]{6,31}={1,2}|[A-Za-z0-9+/]{8,32}|[0-9a-f]{12,32})` +
	`(?:$|[\s"',;|])`)

// decodableWords returns the words that decode to printable text: padded base64, base64 of mixed letters, and hex.
func decodableWords(text string) []span {
	if !shortlyCoded(text) {
		return nil
	}
	var found []span
	for at := 0; ; { // what ends one word begins the next: the search goes on before it
		m := short.FindStringSubmatchIndex(text[at:])
		if m == nil {
			return found
		}
		from, to := at+m[2], at+m[3]
		if shortCode(text[from:to]) {
			found = append(found, span{from: from, to: to, name: "encoded"})
		}
		at = to
	}
}

func shortCode(word string) bool {
	if h, err := hex.DecodeString(word); err == nil && len(h) >= 6 && strings.ContainsAny(word, "abcdef") {
		return isPrintable(h)
	}
	if len(word)%4 != 0 || !strings.HasSuffix(word, "=") && classChangeShare(word) <= 0.2 {
		return false
	}
	b, err := base64.StdEncoding.DecodeString(word)
	return err == nil && isPrintable(b)
}

func isPrintable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return len(b) >= 4
}

// encodedSecrets returns words that decode to text with a secret in it.
func (r *Redactor) encodedSecrets(text string) []span {
	found := decodableWords(text)
	for _, m := range encodedPlaces(text) {
		if slices.ContainsFunc(listDecodings(text[m[0]:m[1]]), r.secretIn) {
			found = append(found, span{from: m[0], to: m[1], name: "encoded"})
		}
	}
	return found
}

// encodedPlaces returns the places of text that may be encoded, with its padding: [A-Za-z0-9+/_-]{16,}={0,6}
func encodedPlaces(text string) (places [][]int) {
	for from, to := range inPacked.findRuns(text, 16) {
		for padding := 0; padding < 6 && to < len(text) && text[to] == '='; padding++ {
			to++
		}
		places = append(places, []int{from, to})
	}
	return places
}

func (r *Redactor) secretIn(text string) bool {
	for s := range r.seenIn(text) {
		if s.name != "random" {
			return true
		}
	}
	return false
}

// fromURL turns base64 for URLs into that for everything else.
var fromURL = strings.NewReplacer("-", "+", "_", "/")

// listDecodings returns what the word means in base64, base32 and hex, where that is
// text.
func listDecodings(word string) []string {
	bare := strings.TrimRight(word, "=")
	common := fromURL.Replace(bare)
	var texts []string
	for _, decode := range []func() ([]byte, error){
		func() ([]byte, error) { return base64.RawStdEncoding.DecodeString(common) },
		func() ([]byte, error) {
			return base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(bare))
		},
		func() ([]byte, error) { return hex.DecodeString(bare) },
	} {
		if b, err := decode(); err == nil && isReadable(b) {
			texts = append(texts, string(b))
		}
	}
	return texts
}

// isReadable reports whether b is ASCII text.
func isReadable(b []byte) bool {
	for _, c := range b {
		if (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c > 0x7e {
			return false
		}
	}
	return len(b) > 0
}
