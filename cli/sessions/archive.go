package sessions

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/forewarm/forewarm/cli/format"
)

// pack writes a file, or a folder with all that is in it, as an archive in which it has a name.
// What is neither file, folder nor link is left out, and told.
func pack(to, told io.Writer, from, name string) error {
	out := tar.NewWriter(to)
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		if !d.IsDir() && !d.Type().IsRegular() && d.Type()&fs.ModeSymlink == 0 {
			tellLeftOut(told, p)
			return nil
		}
		return packEntry(out, p, path.Join(name, filepath.ToSlash(rel)), d)
	})
	if err != nil {
		return fmt.Errorf("packing %s: %w", from, err)
	}
	return out.Close()
}

func tellLeftOut(told io.Writer, name string) {
	_, _ = fmt.Fprintf(told, "forewarm: left out: %s is neither file, folder nor link\n",
		format.Plain(name))
}

func packEntry(out *tar.Writer, p, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(p); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	header.Name, header.Uname, header.Gname, header.Uid, header.Gid = name, "", "", 0, 0
	if err := out.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(p) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.CopyN(out, file, header.Size) // it may grow meanwhile
	return err
}

// unpack reads an archive into a folder. What it calls name gets another name there. Nothing
// is written outside of that, whatever the archive says, and nothing through a link.
func unpack(from io.Reader, told io.Writer, dir, name, as string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("copying to %s: %w", dir, err)
	}
	defer func() { _ = root.Close() }()
	archive, to := tar.NewReader(from), target{root: root, name: name, as: as}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, from) // what fills the last block
			return err
		}
		if err != nil {
			return fmt.Errorf("reading what the node sends: %w", err)
		}
		switch header.Typeflag {
		case tar.TypeDir, tar.TypeSymlink, tar.TypeReg, tar.TypeLink:
			if err := to.unpack(archive, header); err != nil {
				return fmt.Errorf("copying %q: %w", header.Name, err)
			}
		default:
			if path.Clean(header.Name) == name {
				return notCopied(name, "forewarm cp --help")
			}
			tellLeftOut(told, header.Name)
		}
	}
}

// target is where an archive is unpacked.
type target struct {
	root *os.Root
	name string // what the archive calls what was asked for
	as   string // what that is called in the root
}

var errNotAsked = errors.New("it was not asked for")

// pathOf is where an entry belongs: in what was asked for, and behind no link.
func (t target) pathOf(entry string) (string, error) {
	rest := path.Clean(entry)
	if t.name != "." && rest != t.name {
		var within bool
		if rest, within = strings.CutPrefix(rest, t.name+"/"); !within {
			return "", errNotAsked
		}
	} else if t.name != "." {
		rest = "."
	}
	if !filepath.IsLocal(filepath.FromSlash(rest)) {
		return "", errNotAsked
	}
	name := filepath.Join(t.as, filepath.FromSlash(rest))
	for parent := filepath.Dir(name); parent != "."; parent = filepath.Dir(parent) {
		if info, err := t.root.Lstat(parent); err == nil && !info.IsDir() {
			return "", fmt.Errorf("%q is no folder", parent)
		}
	}
	return name, nil
}

func (t target) unpack(archive io.Reader, header *tar.Header) error {
	name, err := t.pathOf(header.Name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(header.Mode & 0o777) //nolint:gosec // nine bits
	switch header.Typeflag {
	case tar.TypeDir:
		if info, err := t.root.Lstat(name); err == nil && !info.IsDir() {
			return fmt.Errorf("%q is no folder", name)
		}
		return t.root.MkdirAll(name, mode|0o700)
	case tar.TypeSymlink:
		_ = t.root.Remove(name)
		return t.root.Symlink(header.Linkname, name)
	case tar.TypeLink: // the same file under another name
		other, err := t.pathOf(header.Linkname)
		if err != nil {
			return err
		}
		_ = t.root.Remove(name)
		return t.root.Link(other, name)
	}
	if parent := filepath.Dir(name); parent != "." {
		if err := t.root.MkdirAll(parent, 0o777); err != nil {
			return err
		}
	}
	return unpackFile(t.root, archive, header, name)
}

// unpackFile writes a file beside its place, and moves it there once it is whole.
func unpackFile(root *os.Root, archive io.Reader, header *tar.Header, name string) error {
	part := name + partSuffix
	_ = root.Remove(part)                    // of a copy that was killed
	mode := fs.FileMode(header.Mode & 0o777) //nolint:gosec // nine bits
	file, err := root.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, archive)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = root.Chtimes(part, header.ModTime, header.ModTime)
	}
	if err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		_ = root.Remove(part)
	}
	return err
}

// partSuffix ends the name of a file that is not here to its end.
const partSuffix = ".forewarm-part"
