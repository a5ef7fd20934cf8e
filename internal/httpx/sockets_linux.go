package httpx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The request and the answer of sock_diag(7): struct inet_diag_req_v2 and struct inet_diag_msg. Both have a struct
// inet_diag_sockid, whose ports and addresses are in the network's order.
const (
	requestSize       = 56
	requestStates     = 4
	requestSourcePort = 8

	answerSize    = 72
	answerState   = 1
	answerPort    = 4
	answerAddress = 8
	answerUser    = 64

	allStates    = 1<<32 - 1
	stateListens = 10 // TCP_LISTEN
	// mostAnswer is how much the kernel answers at once at most.
	mostAnswer = 32 << 10
)

// askForSockets asks the kernel for the sockets of a port.
func askForSockets(port uint16) ([]Socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("asking for sockets: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	var all []Socket
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		found, err := dumpSockets(fd, family, port)
		if err != nil {
			return nil, fmt.Errorf("asking for sockets: %w", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func dumpSockets(fd int, family uint8, port uint16) (all []Socket, err error) {
	request := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+requestSize)
	binary.NativeEndian.PutUint32(request, unix.SizeofNlMsghdr+requestSize)
	binary.NativeEndian.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := make([]byte, requestSize)
	body[0], body[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(body[requestStates:], allStates)
	binary.BigEndian.PutUint16(body[requestSourcePort:], port)
	if err := unix.Sendto(fd, append(request, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	for buf := make([]byte, mostAnswer); ; {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		for _, m := range messages {
			if m.Header.Type == unix.NLMSG_DONE || m.Header.Type == unix.NLMSG_ERROR {
				return all, failureOf(m)
			}
			if s, ok := socketOf(m.Data); ok {
				all = append(all, s)
			}
		}
	}
}

var errInconsistent = errors.New("the kernel's table changed meanwhile")

// failureOf is the error with which the kernel ends its answer; nil: it has told all.
func failureOf(last syscall.NetlinkMessage) error {
	if last.Header.Flags&unix.NLM_F_DUMP_INTR != 0 {
		return errInconsistent
	}
	if len(last.Data) < 4 { //nolint:mnd // a number of the kernel's
		return nil
	}
	if code := int32(binary.NativeEndian.Uint32(last.Data)); code < 0 { //nolint:gosec // the same bits
		return syscall.Errno(-code)
	}
	return nil
}

// socketOf reads what the kernel tells of a socket.
func socketOf(answer []byte) (s Socket, ok bool) {
	if len(answer) < answerSize {
		return s, false
	}
	address := answer[answerAddress : answerAddress+16]
	if answer[0] == unix.AF_INET {
		address = address[:4]
	}
	ip, ok := netip.AddrFromSlice(address)
	return Socket{Local: netip.AddrPortFrom(ip.Unmap(), binary.BigEndian.Uint16(answer[answerPort:])),
		UID: binary.NativeEndian.Uint32(answer[answerUser:]), Listens: answer[answerState] == stateListens}, ok
}
