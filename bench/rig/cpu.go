package rig

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Share says who used the machine's processors, each from 0 to 1 of all of them.
type Share struct {
	Client, Server, Rest float64
	Each                 []time.Duration // processor time of each server, then of each worker
}

// String renders the share for people. The rest is PostgreSQL, and whatever else
// the machine does.
func (s Share) String() string {
	return fmt.Sprintf("client %.0f %%, server %.0f %%, rest %.0f %% of %d cores", 100*s.Client, 100*s.Server,
		100*s.Rest, runtime.NumCPU())
}

// cpuUsage is processor time at one moment.
type cpuUsage struct {
	at                     time.Time
	client, server, system time.Duration
	each                   []time.Duration
}

// tick is the unit of /proc on Linux.
const tick = 10 * time.Millisecond

// readUsage reads what was used so far. What cannot be read counts as nothing: it is
// told beside the figures, never part of one.
func readUsage(f Fleet) cpuUsage {
	u := cpuUsage{at: time.Now(), system: systemTime()}
	for _, p := range slices.Concat(f.Servers, f.Workers) {
		used := ProcessTime(p.cmd.Process.Pid)
		u.server, u.each = u.server+used, append(u.each, used)
	}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err == nil {
		u.client = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return u
}

func (u cpuUsage) shareSince(before cpuUsage) Share {
	all := float64(u.at.Sub(before.at)) * float64(runtime.NumCPU())
	s := Share{Client: float64(u.client-before.client) / all, Server: float64(u.server-before.server) / all}
	for i, used := range u.each {
		s.Each = append(s.Each, used-before.each[i])
	}
	s.Rest = max(0, float64(u.system-before.system)/all-s.Client-s.Server)
	return s
}

// ProcessTime reads user and system time of a process: the 14th and 15th field of
// proc_pid_stat(5).
func ProcessTime(pid int) time.Duration {
	_, fields := readStat(strconv.Itoa(pid))
	return sumTicks(fields, 11, 12)
}

// systemTime reads the busy time of all processors from proc_stat(5): user,
// nice, system, irq, softirq.
func systemTime() time.Duration {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return sumTicks(bytes.Fields(line), 1, 2, 3, 6, 7)
}

func sumTicks(fields [][]byte, which ...int) time.Duration {
	var sum int64
	for _, i := range which {
		if i < len(fields) {
			n, err := strconv.ParseInt(string(fields[i]), 10, 64)
			if err == nil {
				sum += n
			}
		}
	}
	return time.Duration(sum) * tick
}
