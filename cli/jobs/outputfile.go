package jobs

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// files are where the output of a job goes, by patterns as Slurm has them.
type files struct {
	out, err string // patterns; err is empty where both streams go to one file
	job      contract.Job
	user     string
	appends  bool
	open     map[string]*os.File // by path
}

// newFiles are the files of a job. They are there before it writes anything.
func (b *batch) newFiles(x contract.Job) (*files, error) {
	usual := "slurm-%j.out"
	if x.ArrayID != "" {
		usual = "slurm-%A_%a.out"
	}
	f := &files{out: cmp.Or(b.Output, usual), err: b.Error, job: x, appends: b.Append, open: map[string]*os.File{},
		user: cmp.Or(b.app.Getenv("USER"), b.app.Getenv("LOGNAME"), "user")}
	if f.job.Name == "" {
		f.job.Name = b.request.in.Name
	}
	for _, r := range allRanks(x) {
		for _, stream := range []string{"stdout", "stderr"} {
			if _, err := f.writer(source{r.rank, stream}); err != nil {
				f.close()
				return nil, err
			}
		}
	}
	return f, nil
}

// checkFiles refuses what no file can be written to, before a job is submitted whose output is wanted there.
func (b *batch) checkFiles() error {
	for _, f := range []struct{ flag, pattern string }{{"output", b.Output}, {"error", b.Error}} {
		path, err := expandPattern(f.pattern, contract.Job{}, 0, "")
		if err != nil {
			return wrongUse("--%s %s: %v", f.flag, f.pattern, err)
		}
		folder := filepath.Dir(path)
		if !b.Wait || strings.Contains(filepath.Dir(f.pattern), "%") {
			continue // nothing is written here, or it depends on the job where
		}
		if is, err := os.Stat(folder); err != nil || !is.IsDir() {
			return wrongUse("--%s %s: there is no folder %s here: make it first, or write where there is one", f.flag,
				f.pattern, folder)
		}
	}
	return nil
}

// perNode reports whether each node has files of its own.
func (f *files) perNode() bool {
	ofNode := regexp.MustCompile(`(^|[^%])(%%)*%\d*[nN]`)
	return ofNode.MatchString(f.out) && (f.err == "" || ofNode.MatchString(f.err))
}

// writer is the file for a stream of a node. What is written again truncates nothing.
func (f *files) writer(from source) (io.Writer, error) {
	pattern := f.out
	if from.stream == "stderr" && f.err != "" {
		pattern = f.err
	}
	path, err := expandPattern(pattern, f.job, from.rank, f.user)
	if err != nil {
		return nil, err
	}
	if f.open[path] == nil {
		how := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if f.appends {
			how = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		}
		if f.open[path], err = os.OpenFile(path, how, 0o666); err != nil { //nolint:gosec // as sbatch: the umask decides
			delete(f.open, path)
			return nil, &exit.Error{Code: exit.Failed, Message: "its output cannot be written here, and it goes on: " +
				err.Error(), Next: []string{"forewarm jobs logs -f " + f.job.ID}, Err: err}
		}
	}
	return f.open[path], nil
}

func (f *files) close() {
	for _, file := range f.open {
		_ = file.Close() // each write has said whether it failed
	}
}

// patternForm has what stands for something in a pattern: a width and a letter.
var patternForm = regexp.MustCompile(`%(\d{0,2})(.?)`)

// noArray is what %a is of a job of no array, as in Slurm.
const noArray = "4294967294"

// expandPattern is the name of a file by a pattern of Slurm. A backslash keeps all of it as it is.
func expandPattern(pattern string, x contract.Job, rank int, user string) (path string, err error) {
	if strings.Contains(pattern, `\`) {
		return strings.ReplaceAll(pattern, `\`, ""), nil
	}
	index := noArray
	if x.ArrayIndex != nil {
		index = strconv.Itoa(*x.ArrayIndex)
	}
	meanings := map[string]string{"%": "%", "j": x.ID, "J": x.ID, "A": cmp.Or(x.ArrayID, x.ID), "a": index,
		"x": strings.ReplaceAll(x.Name, "/", "_"), "u": user, "n": strconv.Itoa(rank), "N": "node" + strconv.Itoa(rank),
		"s": "batch", "t": "0"}
	path = patternForm.ReplaceAllStringFunc(pattern, func(found string) string {
		m := patternForm.FindStringSubmatch(found)
		text, known := meanings[m[2]]
		if !known {
			err = fmt.Errorf("%s stands for nothing: write %%j, %%A, %%a, %%x, %%u, %%n, %%N or %%%%", found)
		}
		width, _ := strconv.Atoi(m[1])
		if _, wrong := strconv.Atoi(text); wrong == nil && len(text) < width {
			text = strings.Repeat("0", width-len(text)) + text
		}
		return text
	})
	return path, err
}
