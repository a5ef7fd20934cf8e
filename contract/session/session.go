// Package session is the wire format of a session with a node: a command, or a TCP
// connection, that the holder of an allocation has there.
//
// A session is carried by WebSocket messages between the holder and the server, and by
// frames of NodeService.Serve between the server and the node. Each message is a byte that
// names the channel, and the channel's data. The channels are those of
// v5.channel.k8s.io, so that whoever knows kubectl exec knows these.
package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Protocol is the WebSocket subprotocol.
const Protocol = "v1.session.forewarm"

// MostData is how many bytes a message carries at most, beside its channel.
const MostData = 32 << 10

// Window is how many bytes of a session are on their way between server and node at most, in
// each direction.
const Window = 256 << 10

// Channel says what the data of a message is.
type Channel byte

// The channels. To and from are seen from the node.
const (
	Stdin  Channel = 0   // to: bytes; for a port, what the connection is sent
	Stdout Channel = 1   // from: bytes; for a port, what the connection sends
	Stderr Channel = 2   // from: bytes; of a command without a terminal
	Result Channel = 3   // from, last: an End as JSON. A session without one was cut off
	Resize Channel = 4   // to: a Size as JSON, for a command with a terminal
	Signal Channel = 5   // to: the name of a signal, such as INT, for the command's process group
	Begin  Channel = 6   // to, first and once, for a command: a Command as JSON
	Leader Channel = 7   // to: the name of a signal for the command's first process, and for no other
	Ack    Channel = 8   // to or from: how many messages the sender has taken, as EncodeCount has it; see Backlog
	HangUp Channel = 9   // to: the command is to be hung up now, and not once nobody comes back to it
	Resume Channel = 10  // to, first, instead of Begin: a Resumption as JSON
	Close  Channel = 255 // to or from: one byte, the channel that carries nothing more
)

// Command is a program to run. It goes in a message, and not in the request's address, which
// proxies log.
type Command struct {
	// Arguments are the program and what it is given; empty: a shell.
	Arguments []string `json:"arguments,omitempty"`
	// Directory is where it begins; empty: the folder of the allocation on the node.
	Directory string `json:"directory,omitempty"`
	// Environment is beside what the allocation brings, which goes first.
	Environment map[string]string `json:"environment,omitempty"`
	// Terminal is what the holder sees of it; nil: it gets pipes.
	Terminal *Terminal `json:"terminal,omitempty"`
	// ResumeID is by what the holder comes back to it after the connection was cut, as NewResumeID
	// makes it; empty: it is hung up then.
	ResumeID string `json:"resume_id,omitempty"`
}

// Terminal is one that a holder looks at.
type Terminal struct {
	Name string `json:"name,omitempty"` // its kind, such as xterm-256color
	Size
}

// Size is that of a terminal, in characters.
type Size struct {
	Columns int `json:"columns"`
	Rows    int `json:"rows"`
}

// MostCells bounds each side of a terminal.
const MostCells = 4096

// End is how a session ended.
type End struct {
	// ExitCode is the command's; 128 and the signal's number if one ended it. It counts where
	// Code is empty.
	ExitCode int `json:"exit_code"`
	// Signal is the one that ended the command, such as KILL.
	Signal string `json:"signal,omitempty"`
	// Code says why there is no exit code: one of the codes of this package.
	Code string `json:"code,omitempty"`
	// Reason is for people.
	Reason string `json:"reason,omitempty"`
}

// Why a session ended without its command's exit code.
const (
	NotStarted = "not_started" // nothing ran: no such program, or nothing listens on the port
	LeaseOver  = "lease_over"  // the allocation's lease is over; the command was ended
	NodeLost   = "node_lost"   // the node is not in reach any more; whether the command still runs is unknown
	NotThere   = "not_there"   // no such command waits for its holder: it has ended, or was hung up
	Refused    = "refused"     // it is not opened, or may not go on
	UserLeft   = "user_left"   // the holder went away before; the command was hung up
)

// ErrMessage says that a message is none of a session.
var ErrMessage = errors.New("not a message of a session")

// AppendMessage appends a message to b.
func AppendMessage(b []byte, c Channel, data []byte) []byte {
	return append(append(b, byte(c)), data...)
}

// ParseMessage splits a message. The data shares the message's memory.
func ParseMessage(m []byte) (Channel, []byte, error) {
	if len(m) == 0 || len(m) > MostData+1 {
		return 0, nil, fmt.Errorf("%w: it has %d bytes", ErrMessage, len(m))
	}
	return Channel(m[0]), m[1:], nil
}

// ParseSize reads the data of Resize.
func ParseSize(data []byte) (Size, error) {
	var s Size
	if err := json.Unmarshal(data, &s); err != nil {
		return Size{}, fmt.Errorf("%w: a size: %w", ErrMessage, err)
	}
	if !s.valid() {
		return Size{}, fmt.Errorf("%w: a size of %d x %d", ErrMessage, s.Columns, s.Rows)
	}
	return s, nil
}

// ParseCommand reads the data of Begin. Arguments and environment are as the kernel takes
// them: without zero bytes, and names without an equals sign.
func ParseCommand(data []byte) (Command, error) {
	var c Command
	if err := json.Unmarshal(data, &c); err != nil {
		return Command{}, fmt.Errorf("%w: a command: %w", ErrMessage, err)
	}
	all := append([]string{c.Directory}, c.Arguments...)
	for name, value := range c.Environment {
		if name == "" || strings.Contains(name, "=") {
			return Command{}, fmt.Errorf("%w: a command: %q names no variable", ErrMessage, name)
		}
		all = append(all, name, value)
	}
	if c.ResumeID != "" && !IsResumeID(c.ResumeID) {
		return Command{}, fmt.Errorf("%w: a command: %.40q is no resume_id", ErrMessage, c.ResumeID)
	}
	for _, text := range all {
		if strings.Contains(text, "\x00") {
			return Command{}, fmt.Errorf("%w: a command: %.40q has a zero byte", ErrMessage, text)
		}
	}
	if t := c.Terminal; t != nil && !t.Size.valid() {
		return Command{}, fmt.Errorf("%w: a terminal of %d x %d", ErrMessage, t.Columns, t.Rows)
	}
	return c, nil
}

func (s Size) valid() bool {
	return s.Columns >= 1 && s.Rows >= 1 && s.Columns <= MostCells && s.Rows <= MostCells
}

// ParseEnd reads the data of Result.
func ParseEnd(data []byte) (End, error) {
	var e End
	if err := json.Unmarshal(data, &e); err != nil {
		return End{}, fmt.Errorf("%w: an end: %w", ErrMessage, err)
	}
	return e, nil
}

// Encode returns e as the data of Result.
func (e End) Encode() []byte {
	data, _ := json.Marshal(e) // it has no value that JSON lacks
	return data
}

// Encode returns c as the data of Begin.
func (c Command) Encode() []byte {
	data, _ := json.Marshal(c) // it has no value that JSON lacks
	return data
}

// Encode returns s as the data of Resize.
func (s Size) Encode() []byte {
	data, _ := json.Marshal(s) // it has no value that JSON lacks
	return data
}

// AwaitPlace is in the reason of a session that is refused because as many are open as may be.
const AwaitPlace = "wait until one ends, or end another"

// WhyOver says for the holder why the work of an allocation was ended: by the state that it is in now, and the name of
// who released it, which is empty where the reader may not see it.
func WhyOver(allocationID, state, by string) string {
	switch state {
	case "released", "releasing":
		if by != "" {
			by = " by " + by
		}
		return allocationID + " was released" + by
	case "failed":
		return allocationID + " has failed"
	}
	return "the lease of " + allocationID + " is over"
}
