package session

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Patience is how long a command whose holder's connection was cut waits for them to come back, before it
// is hung up.
const Patience = time.Minute

// MostKept is how many bytes of what one end has sent and the other has not taken are kept. What is on its way to the
// other end of the world and back fits.
const MostKept = 4 << 20

// Resumption is how a holder comes back to a command.
type Resumption struct {
	ResumeID string `json:"resume_id"`
	// Taken is how many of the command's numbered messages the holder has.
	Taken uint64 `json:"taken"`
}

// NewResumeID returns the id of a command, which nobody can guess.
func NewResumeID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}

// IsResumeID reports whether s is as NewResumeID makes it.
func IsResumeID(s string) bool {
	got, err := hex.DecodeString(s)
	return err == nil && len(got) == 16 && hex.EncodeToString(got) == s
}

// ParseResumption reads the data of Resume.
func ParseResumption(data []byte) (Resumption, error) {
	var r Resumption
	if err := json.Unmarshal(data, &r); err != nil {
		return Resumption{}, fmt.Errorf("%w: a resumption: %w", ErrMessage, err)
	}
	if !IsResumeID(r.ResumeID) {
		return Resumption{}, fmt.Errorf("%w: a resumption: %.40q is no resume_id", ErrMessage, r.ResumeID)
	}
	return r, nil
}

// Encode returns r as the data of Resume.
func (r Resumption) Encode() []byte {
	data, _ := json.Marshal(r) // it has no value that JSON lacks
	return data
}

// EncodeCount returns the data of Ack.
func EncodeCount(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// ParseCount reads the data of Ack.
func ParseCount(data []byte) (uint64, error) {
	if len(data) != 8 {
		return 0, fmt.Errorf("%w: a count of %d bytes", ErrMessage, len(data))
	}
	return binary.BigEndian.Uint64(data), nil
}

// IsNumbered reports whether a message counts in Ack: those that are empty only show that somebody is there, and
// those that carry a session belong to one connection.
func IsNumbered(c Channel, data []byte) bool {
	switch c {
	case Begin, Resume, Ack, HangUp:
		return false
	default:
		return len(data) > 0
	}
}

// Backlog keeps the numbered messages that one side has sent, in their order, until the other says that
// it has taken them: what was on its way when a connection was cut is sent again on the next. Its zero
// value is ready to use. It is not safe for concurrent use.
type Backlog struct {
	taken    uint64 // by the other side
	messages [][]byte
	size     int // of the messages, in bytes
}

// Full reports whether no more is to be added until the other side has taken some.
func (b *Backlog) Full() bool { return b.size >= MostKept }

// Add adds a message. The data is copied.
func (b *Backlog) Add(c Channel, data []byte) {
	b.messages = append(b.messages, AppendMessage(make([]byte, 0, len(data)+1), c, data))
	b.size += len(data) + 1
}

// Sent is how many messages were added in all.
func (b *Backlog) Sent() uint64 { return b.taken + uint64(len(b.messages)) }

// Taken is how many of them the other side has.
func (b *Backlog) Taken() uint64 { return b.taken }

// Take notes how many messages the other side has taken in all. A count from before another one changes nothing.
func (b *Backlog) Take(count uint64) error {
	if count > b.Sent() {
		return fmt.Errorf("%w: %d messages were taken, and %d were sent", ErrMessage, count, b.Sent())
	}
	for ; b.taken < count; b.taken++ {
		b.size -= len(b.messages[0])
		b.messages[0] = nil
		b.messages = b.messages[1:]
	}
	return nil
}

// After returns the messages that follow the first count, as AppendMessage makes them. They are the backlog's.
// A count of messages that are not kept any more is an error.
func (b *Backlog) After(count uint64) ([][]byte, error) {
	if count < b.taken || count > b.Sent() {
		return nil, fmt.Errorf("%w: messages after %d, where %d to %d are kept", ErrMessage, count, b.taken, b.Sent())
	}
	return b.messages[count-b.taken:], nil
}
