package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/redact"
)

// sample is one row of a corpus: log lines with secrets between « and », and lines that must stay as they are.
type sample struct{ id, category, text, near string }

func loadCorpus(t testing.TB, name string) (all []sample) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		require.Len(t, cells, 4, line)
		require.False(t, seen[cells[0]], "two samples are called %s", cells[0])
		seen[cells[0]] = true
		all = append(all, sample{cells[0], cells[1], fillTokens(cells[0], cells[2]), cells[3]})
	}
	return all
}

var blank = regexp.MustCompile(`\{([a-z]?)(\d*)(?::([^}]*))?\}`)

// alphabets are the letters of made tokens, by their kind.
var alphabets = map[string]string{
	"r": "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789", "a": "bcdfghjklmnpqrstvwxzaeiou",
	"h": "0123456789abcdef",
	"d": "0123456789", "u": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
}

// fillTokens makes the tokens of a text, the same for the same sample.
func fillTokens(id, text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	random := rand.New(rand.NewPCG(h.Sum64(), 1))
	return blank.ReplaceAllStringFunc(text, func(match string) string {
		parts := blank.FindStringSubmatch(match)
		switch n, _ := strconv.Atoi(parts[2]); {
		case parts[1] == "b":
			return base64.StdEncoding.EncodeToString([]byte(parts[3]))
		case parts[1] == "x":
			return hex.EncodeToString([]byte(parts[3]))
		case alphabets[parts[1]] != "" && n > 0:
			token := make([]byte, n)
			for i := range token {
				token[i] = alphabets[parts[1]][random.IntN(len(alphabets[parts[1]]))]
			}
			return string(token)
		case match == "{}":
			return ""
		default:
			return match // braces of the sample's own
		}
	})
}

var marked = regexp.MustCompile(`«([^»]*)»`)

// survivingSecrets are the secrets of a sample that come through.
func (s sample) survivingSecrets(r *redact.Redactor) (found []string) {
	text := strings.NewReplacer("«", "", "»", "").Replace(s.text)
	got := redactAll(r, text)
	for _, secret := range marked.FindAllStringSubmatch(s.text, -1) {
		if strings.Contains(got, secret[1]) {
			found = append(found, secret[1])
		}
	}
	return found
}

// redactAll sends the lines of a text through one stream.
func redactAll(r *redact.Redactor, text string) string {
	stream := r.NewStream()
	var out []string
	for line := range strings.SplitSeq(text, "⏎") {
		got, _ := stream.Redact(line)
		out = append(out, got.String())
	}
	return strings.Join(out, "⏎")
}

// misses and falseAlarms are known to be wrong: each is named in docs/agent.md.
var (
	misses      = map[string]bool{}
	falseAlarms = map[string]bool{}
)

// TestCorpus counts what survives and what is cut without need, over formats that people and programs write secrets in.
func TestCorpus(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{})
	missed, alarms, total := 0, 0, 0
	for _, name := range []string{"corpus.tsv", "holdout.tsv"} {
		for _, s := range loadCorpus(t, name) {
			total++
			require.Regexp(t, marked, s.text, s.id)
			if left := s.survivingSecrets(r); len(left) > 0 {
				missed++
				if !misses[s.id] {
					t.Errorf("%s: %q survives in %q", s.id, left,
						redactAll(r, strings.NewReplacer("«", "", "»", "").Replace(s.text)))
				}
			} else if misses[s.id] {
				t.Errorf("%s is found now: take it off the list, and out of docs/agent.md", s.id)
			}
			if got := redactAll(r, s.near); strings.Contains(got, "[redacted:") {
				alarms++
				if !falseAlarms[s.id] {
					t.Errorf("%s: %q became %q", s.id, s.near, got)
				}
			} else if falseAlarms[s.id] {
				t.Errorf("%s stays readable now: take it off the list, and out of docs/agent.md", s.id)
			}
		}
	}
	fmt.Printf("figure: redaction_formats %d\nfigure: redaction_misses %d\nfigure: redaction_false_alarms %d\n", total,
		missed, alarms)
	require.GreaterOrEqual(t, total, 260)
	require.LessOrEqual(t, missed, 5)
	require.LessOrEqual(t, alarms, 5)
}

// FuzzRedactTwice checks that what was redacted stays as it is, and that no text grows but by the marks.
func FuzzRedactTwice(f *testing.F) {
	for _, s := range loadCorpus(f, "corpus.tsv") {
		f.Add(strings.NewReplacer("«", "", "»", "").Replace(s.text))
	}
	r := newScrubber(f, redact.Config{})
	f.Fuzz(func(t *testing.T, text string) {
		once, _ := r.Redact(text)
		twice, _ := r.Redact(once.String())
		if once != twice {
			t.Fatalf("%q\n%q\n%q", text, once, twice)
		}
		if len(once.String()) > min(2<<10, 32*len(text)) {
			t.Fatalf("%d bytes became %d", len(text), len(once.String()))
		}
	})
}
