package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/forewarm/forewarm/provisioners"
)

// The builds of the daemon that an installation hands out, as make release/node names them.
const (
	nodeAMD64       = "forewarm-node-linux-amd64"
	nodeARM64       = "forewarm-node-linux-arm64"
	nodeStaticAMD64 = "forewarm-node-static-linux-amd64"
	nodeStaticARM64 = "forewarm-node-static-linux-arm64"
	nodeSums        = "forewarm-node.sha256"
)

// downloadDir is where the programs are that GET /download/ hands out: as configured, or
// beside this program.
func (c Config) downloadDir() string {
	if c.Server.DownloadDir != "" {
		return c.Server.DownloadDir
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Dir(self)
}

// findDownloads are the paths of those that are there, by name.
func (c Config) findDownloads() (map[string]string, error) {
	found := map[string]string{}
	for _, name := range []string{nodeAMD64, nodeARM64, nodeStaticAMD64, nodeStaticARM64, nodeSums} {
		path := filepath.Join(c.downloadDir(), name)
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode().IsRegular():
			found[name] = path
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("looking for what is handed out: %w", err)
		}
	}
	if c.Server.DownloadDir != "" && len(found) == 0 {
		return nil, c.valueError("server.download_dir", "has no build of the daemon, such as "+nodeAMD64,
			"build them with make release/node")
	}
	return found, nil
}

// findDaemonPrograms are those that machines download from the control plane at a URL, with
// their sums as of now.
func (c Config) findDaemonPrograms(at string) (provisioners.DaemonPrograms, error) {
	found, err := c.findDownloads()
	if err != nil {
		return provisioners.DaemonPrograms{}, err
	}
	var programs provisioners.DaemonPrograms
	for name, program := range map[string]*provisioners.DaemonProgram{
		nodeAMD64: &programs.AMD64, nodeStaticAMD64: &programs.StaticAMD64,
		nodeARM64: &programs.ARM64, nodeStaticARM64: &programs.StaticARM64,
	} {
		path, there := found[name]
		if !there {
			continue
		}
		if program.SHA256, err = sumFile(path); err != nil {
			return provisioners.DaemonPrograms{}, err
		}
		program.URL = strings.TrimRight(at, "/") + "/download/" + name
	}
	return programs, nil
}

// sumFile is the SHA-256 sum of a file, in hexadecimal.
func sumFile(path string) (string, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return "", fmt.Errorf("reading a program: %w", err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
