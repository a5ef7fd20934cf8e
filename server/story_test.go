package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/server"
)

// secrets are kept out of the files, even those of tests: scanners cannot tell.
var secrets = regexp.MustCompile(keys.Pattern)

// Each file in testdata is a conversation with a server over a real ledger: what
// is sent, and what comes back. Run with -update, the answers are rewritten.
//
//	# a remark
//	! pool | warm <slots> | key <name> <role> [<tenant>] | agent <name> | tenant <name>
//	! work             run due tasks for six seconds, with a provider that boots at once
//	! schedule         give GPUs to the jobs whose turn it is
//	! advance <time>
//	! save <name>      remember the id in the last answer as ${name}
//	> <key> <method> <path> [<header>=<value> ...]
//	{ the body }
//	< the answer: status, headers that matter, body
func TestStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			s := &story{world: newWorld(t, servesOld(file)), saved: map[string]string{}}
			describesOld(file, s.world)
			compareGolden(t, file, s.replay(string(text)))
		})
	}
}

// isOld reports whether a conversation is with routes of before.
func isOld(file string) bool { return strings.HasPrefix(filepath.Base(file), "compat_") }

// servesOld has a server serve what a conversation needs.
func servesOld(file string) func(*server.Config) {
	return func(c *server.Config) { c.Compat = isOld(file) }
}

// describesOld compares nothing with the description where a conversation is with what is in none.
func describesOld(file string, w *world) {
	if isOld(file) {
		w.handler = w.server
	}
}

type story struct {
	*world
	out   bytes.Buffer
	made  contract.Pool
	last  []byte
	saved map[string]string
}

// replay replays a file and returns it with the answers that came.
func (s *story) replay(text string) []byte {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.HasPrefix(line, "<") {
			continue
		}
		fmt.Fprintln(&s.out, line)
		switch {
		case strings.HasPrefix(line, "!"):
			s.followDirective(strings.Fields(line)[1:])
		case strings.HasPrefix(line, ">"):
			body := ""
			if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "{") {
				i++
				body = lines[i]
				fmt.Fprintln(&s.out, body)
			}
			s.exchange(strings.Fields(s.fillSaved(line))[1:], s.fillSaved(body))
		}
	}
	return s.out.Bytes()
}

func (s *story) fillSaved(text string) string {
	for name, id := range s.saved {
		text = strings.ReplaceAll(text, "${"+name+"}", id)
	}
	return text
}

func (s *story) followDirective(words []string) {
	s.t.Helper()
	switch words[0] {
	case "pool":
		s.made = s.createPool()
	case "warm":
		n, err := strconv.Atoi(words[1])
		require.NoError(s.t, err)
		s.warmNodes(s.made, n)
	case "work":
		s.runDueTasks(s.made)
	case "key":
		body := `{"name":"` + words[1] + `","kind":"person","role":"` + words[2] + `"`
		if len(words) > 3 {
			body += `,"organization_id":"` + words[3] + `"`
		}
		s.keepKey(words[1], body+"}")
	case "agent":
		s.createAgentKey(words[1])
	case "tenant":
		s.saved[words[1]] = s.createTenant(words[1]).ID
	case "schedule":
		require.NoError(s.t, s.ledger.ScheduleJobs(s.t.Context(), s.made.ID))
	case "advance":
		d, err := time.ParseDuration(words[1])
		require.NoError(s.t, err)
		s.clock.Advance(d)
	case "save":
		var v struct {
			ID     string       `json:"id"`
			TaskID string       `json:"task_id"`
			JobID  string       `json:"job_id"`
			Key    contract.Key `json:"key"`
		}
		require.NoError(s.t, json.Unmarshal(s.last, &v))
		s.saved[words[1]] = cmp.Or(v.ID, v.TaskID, v.JobID, v.Key.ID)
	default:
		s.t.Fatalf("no directive %q", words[0])
	}
}

func (s *story) exchange(words []string, body string) {
	s.t.Helper()
	key := words[0]
	if key == "nobody" {
		key = ""
	}
	var headers []string
	for _, h := range words[3:] {
		name, value, found := strings.Cut(h, "=")
		require.True(s.t, found, h)
		headers = append(headers, name, value)
	}
	got := s.send(key, words[1], words[2], body, headers...)
	s.last = got.Body.Bytes()
	fmt.Fprintf(&s.out, "< %d %s\n", got.Code, http.StatusText(got.Code))
	for _, name := range []string{"Location", "ETag", contract.HeaderIdempotencyReplayed, "Retry-After", "Allow"} {
		if v := got.Header().Get(name); v != "" {
			fmt.Fprintf(&s.out, "< %s: %s\n", name, v)
		}
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, bytes.TrimSpace(s.last), "< ", "  ") == nil && pretty.Len() > 0 {
		fmt.Fprintf(&s.out, "< %s\n", secrets.ReplaceAllString(pretty.String(), "fw_test_***"))
	}
}
