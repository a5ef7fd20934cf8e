package client

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// JobFiles are files that a job finds where it begins, on each of its nodes. They go with its input: all of it has at
// most MostJobInput bytes once it is packed.
type JobFiles struct {
	Files []JobFile
	// Secrets are files that nobody but the job reads, by a name. The job finds the path of the secret NAME in
	// NAME_FILE. They are in no answer of the API, and not in what is known of the job's environment.
	Secrets map[string][]byte
}

// JobFile is a file of a job.
type JobFile struct {
	Name       string // its path below the job's folder, with slashes
	Data       []byte
	Executable bool
}

// MostJobInput is how many bytes of input a job may have, with its files, once they are packed.
const MostJobInput = 192 << 10

// Where a job's own files are, below the folder in which it begins.
const (
	ownFolder    = ".forewarm"
	ownInput     = ownFolder + "/input"
	ownSecrets   = ownFolder + "/secrets/"
	fileMode     = 0o600
	programMode  = 0o700
	secretMode   = 0o400
	unpackFailed = "forewarm: the files of the job cannot be unpacked: its nodes need tar and gzip"
)

// packedAt is when all files were changed, as an archive says: it is the same whoever packs them, and one that every
// tool takes.
var packedAt = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// AddTo returns a request for a job that unpacks the files where it begins, and then runs its command, which reads the
// same input as before. Its nodes need sh, tar and gzip. The same files make the same request.
func (f JobFiles) AddTo(in contract.JobCreate) (contract.JobCreate, error) {
	if len(f.Files) == 0 && len(f.Secrets) == 0 {
		return in, nil
	}
	if in.Directory != "" {
		return in, errors.New("files are put into the job's own folder, where it has to begin: leave out its directory")
	}
	var script strings.Builder
	script.WriteString(`tar -xzpof - || { echo "` + unpackFailed + `" >&2; exit 126; }` + "\n")
	files := slices.SortedFunc(slices.Values(f.Files), func(x, y JobFile) int { return strings.Compare(x.Name, y.Name) })
	for i, file := range files {
		if err := checkFileName(file.Name); err != nil {
			return in, err
		}
		if i > 0 && files[i-1].Name == file.Name {
			return in, fmt.Errorf("%s: there are two files of that name", file.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Secrets)) {
		if !secretName.MatchString(name) {
			return in, fmt.Errorf("%q cannot be the name of a variable", name)
		}
		fmt.Fprintf(&script, "export %s_FILE=\"$PWD/%s%s\"\n", name, ownSecrets, name)
	}
	stdin := "/dev/null"
	if len(in.Input) > 0 {
		stdin = ownInput
	}
	script.WriteString(`exec "$@" < ` + stdin)
	packed, err := f.pack(files, in.Input)
	if err != nil {
		return in, err
	}
	if len(packed) > MostJobInput {
		return in, fmt.Errorf("files, secrets and input have %d bytes once they are packed, and may have %d: put what is "+
			"large where the nodes can read it", len(packed), MostJobInput)
	}
	in.Input, in.Command = packed, slices.Concat([]string{"sh", "-c", script.String(), "sh"}, in.Command)
	return in, nil
}

// checkFileName refuses what would be outside of the job's folder, or among its own files.
func checkFileName(name string) error {
	clean := path.Clean(name)
	switch {
	case name == "" || path.IsAbs(name) || clean != name || clean == "." || clean == ".." ||
		strings.HasPrefix(clean, "../"):
		return fmt.Errorf("%q: a file's name must be a path below the job's folder", name)
	case clean == ownFolder || strings.HasPrefix(clean, ownFolder+"/"):
		return fmt.Errorf("%q: %s is the job's own", name, ownFolder)
	}
	return nil
}

// pack is all files as a compressed archive.
func (f JobFiles) pack(files []JobFile, input []byte) ([]byte, error) {
	var out bytes.Buffer
	zipped, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // which there is
	archive := tar.NewWriter(zipped)
	var failed error
	add := func(name string, mode int64, data []byte) {
		if failed == nil {
			failed = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, ModTime: packedAt,
				Size: int64(len(data))})
		}
		if failed == nil {
			_, failed = archive.Write(data)
		}
	}
	for _, folder := range []string{ownFolder + "/", ownSecrets} {
		failed = errors.Join(failed, archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder,
			Mode: programMode, ModTime: packedAt}))
	}
	for _, file := range files {
		mode := int64(fileMode)
		if file.Executable {
			mode = programMode
		}
		add(file.Name, mode, file.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Secrets)) {
		add(ownSecrets+name, secretMode, f.Secrets[name])
	}
	if len(input) > 0 {
		add(ownInput, fileMode, input)
	}
	if err := errors.Join(failed, archive.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("packing files: %w", err)
	}
	return out.Bytes(), nil
}
