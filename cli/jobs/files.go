package jobs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// addFiles returns the request with the files and secrets that flags name.
func (r *request) addFiles(in contract.JobCreate) (contract.JobCreate, error) {
	var all client.JobFiles
	for _, text := range r.files {
		name, source, named := strings.Cut(text, "=")
		if !named {
			name, source = filepath.Base(filepath.Clean(text)), text
		}
		found, err := readFiles(strings.TrimSuffix(name, "/"), source)
		if err != nil {
			return in, wrongUse("--file %s: %v", text, err)
		}
		all.Files = append(all.Files, found...)
	}
	for _, text := range r.secrets {
		name, source, named := strings.Cut(text, "=")
		if !named || name == "" || source == "" {
			return in, wrongUse("--secret %s: write NAME=FILE; what the file has is not written here", text)
		}
		data, err := readBounded(source)
		if err != nil {
			return in, wrongUse("--secret %s: %v", text, err)
		}
		if _, twice := all.Secrets[name]; twice {
			return in, wrongUse("--secret %s: there are two of that name", name)
		}
		if all.Secrets == nil {
			all.Secrets = map[string][]byte{}
		}
		all.Secrets[name] = data
	}
	out, err := all.AddTo(in)
	if err != nil {
		return in, wrongUse("--file and --secret: %v", err)
	}
	return out, nil
}

// readFiles reads a file, or all files below a folder.
func readFiles(name, source string) ([]client.JobFile, error) {
	var all []client.JobFile
	total := 0
	err := filepath.WalkDir(source, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		below, err := filepath.Rel(source, at)
		if err != nil {
			return err
		}
		if err := checkLink(source, at, entry); err != nil {
			return err
		}
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		data, err := readBounded(at)
		if err != nil {
			return err
		}
		if total += len(data); total > mostUnpacked {
			return errTooLarge
		}
		all = append(all, client.JobFile{Name: path.Join(name, filepath.ToSlash(below)), Data: data,
			Executable: info.Mode()&0o100 != 0})
		return nil
	})
	return all, err
}

// checkLink refuses a link that leaves the folder in which it was found: who names a folder sends what is in it. A
// link that was named itself is meant.
func checkLink(folder, at string, entry fs.DirEntry) error {
	if at == folder || entry.Type()&fs.ModeSymlink == 0 {
		return nil
	}
	inside, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks(at)
	if err != nil {
		return err
	}
	if to, err := filepath.Rel(inside, target); err != nil || !filepath.IsLocal(to) {
		return fmt.Errorf("%s is a link to a file outside of the folder: copy that file there, or name it by itself", at)
	}
	return nil
}

// mostUnpacked bounds what is read to be packed, in bytes.
const mostUnpacked = 16 << 20

var errTooLarge = errors.New("it has more than 16MiB: put what is large where the nodes can read it")

// readBounded reads a file. One that is no file, such as a pipe, is refused.
func readBounded(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, mostUnpacked+1))
	if err == nil && len(data) > mostUnpacked {
		err = errTooLarge
	}
	return data, err
}
