package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postmaster is the process that PostgreSQL's other processes are children of; 0: it
// does not run on this machine.
func (d *Database) Postmaster(ctx context.Context) (int, error) {
	conn, err := pgx.Connect(ctx, d.server)
	if err != nil {
		return 0, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var pid int
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return 0, fmt.Errorf("finding PostgreSQL's process: %w", err)
	}
	name, fields := readStat(strconv.Itoa(pid))
	if name != "postgres" {
		return 0, nil
	}
	return parentOf(fields)
}

// PostgresTime is the processor time of PostgreSQL: of the postmaster, of its children,
// and of those that are over. Without a postmaster it is 0.
func PostgresTime(postmaster int) time.Duration {
	if postmaster == 0 {
		return 0
	}
	_, fields := readStat(strconv.Itoa(postmaster))
	sum := sumTicks(fields, 11, 12, 13, 14)
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	for _, process := range all {
		_, fields := readStat(filepath.Base(process))
		if parent, err := parentOf(fields); err == nil && parent == postmaster {
			sum += sumTicks(fields, 11, 12)
		}
	}
	return sum
}

// readStat reads the name of a process, and its fields of proc_pid_stat(5) from after
// the name, which may hold spaces.
func readStat(pid string) (string, [][]byte) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", nil
	}
	begin, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if begin < 0 || end < begin {
		return "", nil
	}
	return string(data[begin+1 : end]), bytes.Fields(data[end+1:])
}

func parentOf(fields [][]byte) (int, error) {
	if len(fields) < 2 {
		return 0, errors.New("the process is gone")
	}
	return strconv.Atoi(string(fields[1]))
}
