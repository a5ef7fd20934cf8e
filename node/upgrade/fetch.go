package upgrade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/internal/httpx"
)

// fetch downloads the new program beside the old one, and proves that it is the one that was meant.
func fetch(ctx context.Context, cfg Config) (path string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.URL, nil)
	if err != nil {
		return "", notHad(fmt.Errorf("downloading the new program: %w", httpx.HideURL(err)))
	}
	answer, err := cfg.HTTP.Do(request)
	if err != nil {
		return "", notHad(fmt.Errorf("downloading the new program: %w", httpx.HideURL(err)))
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return "", notHad(fmt.Errorf("downloading the new program from %s: %s", request.URL.Host, answer.Status))
	}
	file, err := makePlace(cfg.Program)
	if err != nil {
		return "", fmt.Errorf("making a place for the new program: %w", err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum), answer.Body)
	err = errors.Join(err, file.Chmod(0o755), file.Sync(), file.Close()) //nolint:gosec // anyone may start it
	if err != nil {
		err = notHad(fmt.Errorf("downloading the new program: %w", httpx.HideURL(err)))
	} else if got := hex.EncodeToString(sum.Sum(nil)); !strings.EqualFold(got, cfg.SHA256) {
		err = &NotTriedError{Sum, fmt.Errorf("the new program is another one than was meant: its SHA-256 sum is %s, and "+
			"not %s", got, cfg.SHA256)}
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}

func notHad(err error) error { return &NotTriedError{Download, err} }

// makePlace makes the file for the next program beside the one that is there, in the place of what an upgrade has left
// that was killed.
func makePlace(program string) (*os.File, error) {
	path := filepath.Join(filepath.Dir(program), "."+filepath.Base(program)+".next")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// mostRedirects is how often a download may be sent elsewhere.
const mostRedirects = 5

// CheckRedirect is for the client of downloads, which follows a few redirects to https. They carry nothing that is
// secret: the address of the one before is left out.
func CheckRedirect(next *http.Request, before []*http.Request) error {
	next.Header.Del("Referer")
	switch {
	case next.URL.Scheme != "https":
		return fmt.Errorf("a redirect leaves https, for %s", next.URL.Host)
	case len(before) > mostRedirects:
		return fmt.Errorf("there are more than %d redirects", mostRedirects)
	}
	return nil
}

// test has a program test itself.
func test(ctx context.Context, program string, arguments []string) error {
	ctx, cancel := context.WithTimeout(ctx, testWithin)
	defer cancel()
	run := exec.CommandContext(ctx, program, arguments...) //nolint:gosec // its sum is known
	run.SysProcAttr = &syscall.SysProcAttr{Setsid: true}   // it does not end with the terminal
	run.WaitDelay = time.Second                            // a child that waits for a driver may outlive it
	said, err := run.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		err = fmt.Errorf("the new program does not pass its own test, and the old one stays: %w", err)
		if text := strings.TrimSpace(string(said)); text != "" {
			err = fmt.Errorf("%w: %.600s", err, text)
		}
		return err
	}
	return nil
}
