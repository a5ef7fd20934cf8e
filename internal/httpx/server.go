package httpx

import (
	"net/http"
	"time"
)

// The limits of a server. There is none on reading a body or writing an answer,
// because event streams live for hours; handlers set deadlines of their own.
const (
	ReadHeaderTimeout = 5 * time.Second  // against clients that send a header byte by byte
	IdleTimeout       = 60 * time.Second // of a kept-alive connection
	MaxHeaderBytes    = 12 << 10         // net/http adds 4 KiB, which makes 16 KiB
)

// NewServer returns a server with these limits that has not started to listen.
func NewServer(addr string, h http.Handler) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: ReadHeaderTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    MaxHeaderBytes,
		ConnContext:       withConn,
		ConnState:         connState,
	}
}
