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
	_, _ = fmt.Fprintf(told, "forewarm: left out: %s is neither file, folder nor link\n", name)
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
// is written outside the folder, whatever the archive says.
func unpack(from io.Reader, told io.Writer, dir, name, as string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("copying to %s: %w", dir, err)
	}
	defer func() { _ = root.Close() }()
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, from) // what fills the last block
			return err
		}
		if err != nil {
			return fmt.Errorf("reading what the node sends: %w", err)
		}
		renamed := func(entry string) string {
			entry = path.Clean(entry)
			if name == "." {
				return filepath.FromSlash(path.Join(as, entry))
			}
			if rest, ok := strings.CutPrefix(entry+"/", name+"/"); ok {
				entry = path.Join(as, rest)
			}
			return filepath.FromSlash(entry)
		}
		if asked := path.Clean(header.Name); name != "." && asked != name && !strings.HasPrefix(asked, name+"/") {
			return fmt.Errorf("reading what the node sends: %q was not asked for", header.Name)
		}
		switch header.Typeflag {
		case tar.TypeDir, tar.TypeSymlink, tar.TypeReg:
			err = unpackEntry(root, archive, header, renamed(header.Name))
		case tar.TypeLink: // the same file under another name
			_ = root.Remove(renamed(header.Name))
			err = root.Link(renamed(header.Linkname), renamed(header.Name))
		default:
			if path.Clean(header.Name) == name {
				return notCopied(name, "forewarm cp --help")
			}
			tellLeftOut(told, header.Name)
		}
		if err != nil {
			return fmt.Errorf("copying %s: %w", header.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, archive io.Reader, header *tar.Header, name string) error {
	mode := fs.FileMode(header.Mode & 0o777) //nolint:gosec // nine bits
	switch header.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, mode|0o700); err != nil {
			return err
		}
		return nil
	case tar.TypeSymlink:
		_ = root.Remove(name)
		return root.Symlink(header.Linkname, name)
	}
	if parent := filepath.Dir(name); parent != "." {
		if err := root.MkdirAll(parent, 0o777); err != nil {
			return err
		}
	}
	part := name + partSuffix
	file, err := root.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, archive) //nolint:gosec // as large as what the user copies
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
