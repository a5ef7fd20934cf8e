package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt")

// TestConversations replays what people type, against a real server, and
// compares every answer, its stream and its exit code. In a conversation $LAST
// is the first id, or the first word, of the last data shown, and a line that
// begins with % lets time pass. So does one that begins with @, in which the GPUs of all
// nodes are seen to be busy for so many percent of it. In one that begins with & the jobs on all nodes
// are begun, and do what it says: write a line, or end with an exit code.
func TestConversations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := runConversation(newTown(t), string(want))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			require.Equal(t, string(want), got)
		})
	}
}

var idForm = regexp.MustCompile(`[a-z]{3}_[0-9a-z]{26}`)

func runConversation(w *town, script string) string {
	w.t.Helper()
	var b strings.Builder
	last := ""
	for l := range strings.Lines(script) {
		l = strings.TrimRight(l, "\n")
		switch {
		case strings.HasPrefix(l, "#"):
			b.WriteString(l + "\n")
		case strings.HasPrefix(l, "% "):
			d, err := time.ParseDuration(l[2:])
			require.NoError(w.t, err)
			w.passTime(d)
			b.WriteString(l + "\n")
		case strings.HasPrefix(l, "@ "):
			w.lookAtGPUs(l[2:])
			b.WriteString(l + "\n")
		case strings.HasPrefix(l, "&"):
			w.workOnJobs(strings.TrimSpace(l[1:]))
			b.WriteString(l + "\n")
		case strings.HasPrefix(l, "$ forewarm"):
			out, errs, code := w.runCommand(splitWords(strings.ReplaceAll(l[len("$ forewarm"):], "$LAST", last))...)
			if id := idForm.FindString(out); id != "" {
				last = id
			} else if out != "" {
				last = strings.Fields(out)[0]
			}
			b.WriteString(l + "\n" + normalizeText(w, out, "") + normalizeText(w, errs, "! "))
			if code != 0 {
				fmt.Fprintf(&b, "[exit %d]\n", code)
			}
		}
	}
	return b.String()
}

// splitWords splits a line as a shell would that knows single quotes.
func splitWords(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// normalizeText takes out what differs from machine to machine.
func normalizeText(w *town, text, prefix string) string {
	if text == "" {
		return ""
	}
	text = w.numberIDs(text)
	text = strings.NewReplacer(w.url, "http://server", strings.TrimPrefix(w.url, "http://"), "server",
		runtime.Version(), "goX").Replace(text)
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}

var (
	deviceForm = regexp.MustCompile(`GPU-SIM-[0-9a-f-]{36}`)
	cloudForm  = regexp.MustCompile(`sim-[0-9a-f]{16}`)
)

// numberIDs renames ids by the order of their appearance, in the same width.
func (w *town) numberIDs(text string) string {
	for _, form := range []*regexp.Regexp{idForm, deviceForm, cloudForm} {
		text = form.ReplaceAllStringFunc(text, func(id string) string {
			prefix := id[:strings.LastIndexAny(id[:8], "_-")+1]
			if _, ok := w.seen[id]; !ok {
				w.seen[id] = len(w.seen) + 1
			}
			return fmt.Sprintf("%s%0*d", prefix, len(id)-len(prefix), w.seen[id])
		})
	}
	return text
}
