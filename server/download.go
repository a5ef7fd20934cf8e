package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server/problem"
)

// downloadRoute is where programs are.
const downloadRoute = "GET /download/:file"

const (
	// downloadTime is the longest that a download may take.
	downloadTime = 10 * time.Minute
	// mostDownloads is how many of one network are handed out at a time.
	mostDownloads = 16
)

// serveDownload hands out a program to anybody: a new machine has no key yet.
func (s *Server) serveDownload(c *gin.Context) {
	name := c.Param("file")
	path, known := s.cfg.Downloads[name]
	if !known {
		abortWith(c, noSuchProgram())
		return
	}
	from := httpx.Network(exchangeOf(c).from)
	if !s.downloads.admitRequest(from) {
		abortWith(c, slowDown("Too many downloads for this address are open.", retryStreams))
		return
	}
	defer s.downloads.releaseRequest(from)
	file, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) { // it was there when the server began
		abortWith(c, noSuchProgram())
		return
	}
	if err != nil {
		panic(fmt.Errorf("handing out a program: %w", err))
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		panic(fmt.Errorf("handing out a program: %w", err))
	}
	c.Header("Content-Type", "application/octet-stream")
	last := time.Now().Add(downloadTime) //nolint:forbidigo // a socket's deadlines are the machine's
	w := &pacedAnswer{ResponseWriter: c.Writer, conn: http.NewResponseController(exchangeOf(c).ResponseWriter),
		each: s.cfg.Timeouts.Send, last: last}
	http.ServeContent(w, c.Request, name, info.ModTime(), file)
}

func noSuchProgram() *problem.Problem {
	return problem.New(contract.CodeNotFound, "This installation hands out no such program.").
		Fix("Build it with make release/node, and set server.download_dir to where it is", "")
}

// pacedAnswer is an answer of which each part must be taken in time, and the whole.
type pacedAnswer struct {
	http.ResponseWriter
	conn *http.ResponseController
	each time.Duration
	last time.Time
}

// Write implements io.Writer.
func (w *pacedAnswer) Write(p []byte) (int, error) {
	due := time.Now().Add(w.each) //nolint:forbidigo // a socket's deadlines are the machine's
	if due.After(w.last) {
		due = w.last
	}
	_ = w.conn.SetWriteDeadline(due)
	return w.ResponseWriter.Write(p)
}
