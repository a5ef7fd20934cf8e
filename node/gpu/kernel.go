package gpu

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// KernelLog reads XIDs from the kernel's log, which holds those of this boot. It is where
// the driver tells of them first, and of GPUs that can no longer be asked.
type KernelLog struct {
	file *os.File

	mu     sync.Mutex
	events map[Event]int
	seq    int64 // of the newest record that was read
}

// OpenKernelLog follows a log such as /dev/kmsg from after the record of a sequence number
// on; negative: from its beginning. Many containers may not read it: then it is an error.
func OpenKernelLog(path string, after int64) (*KernelLog, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the operator's choice
	if err != nil {
		return nil, err
	}
	k := &KernelLog{file: file, events: map[Event]int{}, seq: after}
	go k.follow(file)
	return k, nil
}

func (k *KernelLog) follow(r io.Reader) {
	buffer, rest := make([]byte, 16<<10), []byte(nil)
	for {
		n, err := r.Read(buffer)
		rest = append(rest, buffer[:n]...)
		for {
			line, after, found := bytes.Cut(rest, []byte("\n"))
			if !found {
				break
			}
			rest = after
			k.note(string(line))
		}
		if errors.Is(err, syscall.EPIPE) { // records were overwritten before they were read
			continue
		}
		if err != nil {
			return
		}
		if len(rest) > len(buffer) {
			rest = nil // no record is that long
		}
	}
}

// xidLine is how the driver writes an XID, as in
// NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.
var xidLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`NVRM: Xid \(PCI:([0-9a-fA-F]+:[0-9a-fA-F]+:[0-9a-fA-F]+)[^)]*\): (\d{1,5}),`)
})

// note reads one record, such as "4,1234,5678,-;NVRM: Xid …".
func (k *KernelLog) note(line string) {
	head, text, found := strings.Cut(line, ";")
	parts := strings.Split(head, ",")
	if !found || len(parts) < 2 {
		return // a record goes on, or it is none
	}
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if seq <= k.seq {
		return
	}
	k.seq = seq
	if m := xidLine().FindStringSubmatch(text); m != nil {
		code, _ := strconv.Atoi(m[2])
		k.events[Event{PCI: NormalPCI(m[1]), Code: code}]++
	}
}

// Take returns the XIDs since it was asked last, those of a burst as one with their
// number, and up to which record the log was read.
func (k *KernelLog) Take() ([]Event, int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := countEvents(k.events)
	clear(k.events)
	return all, k.seq
}

// Close stops reading.
func (k *KernelLog) Close() { _ = k.file.Close() }
