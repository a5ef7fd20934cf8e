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
// What is neither file, folder nor link is left out.
func pack(to io.Writer, from, name string) error {
	out := tar.NewWriter(to)
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		return packEntry(out, p, path.Join(name, filepath.ToSlash(rel)), d)
	})
	if err != nil {
		return fmt.Errorf("packing %s: %w", from, err)
	}
	return out.Close()
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
	} else if !info.IsDir() && !info.Mode().IsRegular() {
		return nil
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
func unpack(from io.Reader, dir, name, as string) error {
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
		entry := path.Clean(header.Name)
		if rest, ok := strings.CutPrefix(entry+"/", name+"/"); ok && name != "." {
			entry = path.Join(as, rest)
		}
		if err := unpackEntry(root, archive, header, filepath.FromSlash(entry)); err != nil {
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
	case tar.TypeReg:
	default:
		return nil // nothing that is copied
	}
	if parent := filepath.Dir(name); parent != "." {
		if err := root.MkdirAll(parent, 0o777); err != nil {
			return err
		}
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, archive) //nolint:gosec // as large as what the user copies
	err = errors.Join(err, file.Close())
	if err == nil {
		err = root.Chtimes(name, header.ModTime, header.ModTime)
	}
	return err
}
