package slurm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// A job carries its tags in two fields, each with one writer, because Slurm has
// no conditional update:
//
//   - the comment is written at submission, and once more by the placeholder
//     itself, which adds what its probe found;
//   - the name holds the mark of the token, and the time when the machine ends
//     unless it is renewed, and is written by Renew.
const (
	commentStart = "forewarm:"
	// mostComment is Slurm's limit of a comment, less its end.
	mostComment = 1023
	// reportSpace is kept for what the placeholder adds.
	reportSpace = 20 + 64 // its keys and a GPU's name
	perDevice   = 49      // index, UUID, memory, errors, comma
)

var (
	markLength  = 16
	namePattern = regexp.MustCompile(`^forewarm-([0-9a-f]{16})(?:-x([0-9]{1,11}))?$`)
	idPattern   = regexp.MustCompile(`^([1-9][0-9]{0,9})-([0-9a-f]{16})$`)
)

// tags say what a job stands for.
type tags struct {
	token, owner, node, kind string
}

// tokenMark names a token of this provisioner in the names of jobs and machines.
func (c Config) tokenMark(token string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", c.Name, token))
	return hex.EncodeToString(sum[:])[:markLength]
}

// jobName is the name of a job with the mark that ends at expires, or never.
func jobName(mark string, expires time.Time) string {
	name := "forewarm-" + mark
	if !expires.IsZero() {
		name += "-x" + strconv.FormatInt(expires.Unix(), 10)
	}
	return name
}

// instanceID is a job's number and mark. A controller that lost its state counts
// from 1 again; the mark keeps an old id from meaning a new job.
func instanceID(job int, mark string) string { return strconv.Itoa(job) + "-" + mark }

func parseID(id string) (job, mark string, ok bool) {
	parts := idPattern.FindStringSubmatch(id)
	if parts == nil {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// formatComment is what a new job's comment says. It has no character that a command
// line of Slurm or of a shell's user would have to quote.
func (c *Cluster) formatComment(t tags) string {
	return commentStart + url.Values{
		"p": {c.config.Name}, "t": {t.token}, "o": {t.owner}, "n": {t.node}, "y": {t.kind},
	}.Encode()
}

// checkComment returns KindBadSpec when the comment would leave no room for the
// devices: Slurm refuses what is too long, the placeholder's own words as well.
func checkComment(comment string, gpus int) error {
	if most := mostComment - reportSpace - gpus*perDevice; len(comment) > most {
		return provisioners.Errorf(provisioners.KindBadSpec,
			"the tags take %d characters of the job's comment, and with %d GPUs %d are left for them: shorten owner "+
				"or name", len(comment), gpus, most)
	}
	return nil
}

// parseComment reads a job's comment back.
func parseComment(comment string) (t tags, provisioner string, found report, err error) {
	text, ours := strings.CutPrefix(comment, commentStart)
	if !ours {
		return tags{}, "", report{}, errors.New("the comment is not ours")
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return tags{}, "", report{}, fmt.Errorf("the comment: %w", err)
	}
	t = tags{token: values.Get("t"), owner: values.Get("o"), node: values.Get("n"), kind: values.Get("y")}
	provisioner = values.Get("p")
	if provisioner == "" || t.token == "" || t.owner == "" || t.node == "" || t.kind == "" {
		return tags{}, "", report{}, errors.New("the comment lacks a tag")
	}
	found, err = parseReport(values)
	return t, provisioner, found, err
}
