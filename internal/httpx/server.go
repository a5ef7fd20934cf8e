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
	MaxHeaderBytes    = 12 << 10         // net/http adds 4 KiB, which makes 16 KiB, and up to 20 of a first request
	// StreamWindow is how much of an HTTP/2 request's body waits to be read, in bytes. A connection
	// has room for 64 of them, so that one that is not read does not hold up the others.
	StreamWindow = 256 << 10
	// maxStreams are the requests that a connection has open: the sessions of a node, and some.
	maxStreams = 128
)

// NewServer returns a server with these limits that has not started to listen.
func NewServer(addr string, h http.Handler) *http.Server {
	s := &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: ReadHeaderTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    MaxHeaderBytes,
		ConnContext:       withConn,
		ConnState:         connState,
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: StreamWindow,
			MaxReceiveBufferPerConnection: 64 * StreamWindow},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true) // for streams, where something before the server ends TLS
	return s
}

// The limits of a server of short answers.
const (
	ShortReadTimeout  = 10 * time.Second // of a whole request, also a body that nobody reads
	ShortWriteTimeout = 30 * time.Second // from the end of a request's header until its answer is taken
)

// NewShortServer returns a server of short answers to small requests, such as metrics: the whole of each is
// bounded. It speaks HTTP/1 alone.
func NewShortServer(addr string, h http.Handler) *http.Server {
	s := NewServer(addr, h)
	s.ReadTimeout, s.WriteTimeout, s.HTTP2 = ShortReadTimeout, ShortWriteTimeout, nil
	s.Protocols.SetHTTP2(false)
	s.Protocols.SetUnencryptedHTTP2(false)
	return s
}
