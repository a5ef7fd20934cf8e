//go:build clouds

package kubernetes

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/forewarm/forewarm/provisioners"
)

// probeDevices learns the GPUs of the machine's node; none while they are not known yet.
// A driver that sees fewer than were asked for is believed: the control plane
// judges machines by their devices.
func (a api) probeDevices(ctx context.Context, s seen) ([]device, error) {
	if s.record.Want.Probe != ProbeLogs {
		return madeUp(s), nil
	}
	log, err := a.core.Pods(s.pod.Namespace).GetLogs(s.pod.Name, &corev1.PodLogOptions{
		LimitBytes: pointerTo[int64](mostLog),
	}).DoRaw(ctx)
	switch {
	case apierrors.IsBadRequest(err), apierrors.IsNotFound(err): // the container has written nothing yet
		return nil, nil
	case err != nil:
		return nil, readError(err, "reading the log of pod %s/%s", s.pod.Namespace, s.pod.Name)
	}
	devices, err := parseProbe(string(log))
	if err != nil {
		return nil, provisioners.Errorf(provisioners.KindTransient, "pod %s/%s: %v", s.pod.Namespace, s.pod.Name, err)
	}
	return devices, nil
}

// mostLog is far above what the probe writes for 1,024 GPUs.
const mostLog = 256 << 10

// madeUp names the GPUs by their node and machine. The names are stable and no
// two machines share one, and that is all: no driver was asked.
func madeUp(s seen) []device {
	devices := make([]device, s.record.Want.GPUs)
	for i := range devices {
		devices[i] = device{
			UUID:  fmt.Sprintf("%s-%s-gpu-%d", s.node.Name, strings.TrimPrefix(s.key.name, namePrefix)[:8], i),
			Index: i, MemoryMiB: s.record.Want.MemoryMiB,
		}
	}
	return devices
}

// parseProbe finds the probe's line in a log; none while it is not there.
func parseProbe(log string) ([]device, error) {
	lines := bufio.NewScanner(strings.NewReader(log))
	lines.Buffer(nil, mostLog)
	for lines.Scan() {
		packed, ours := strings.CutPrefix(lines.Text(), probeMark)
		if !ours {
			continue
		}
		table, err := base64.StdEncoding.DecodeString(strings.TrimSpace(packed))
		if err != nil {
			return nil, fmt.Errorf("reading the probe's line: %w", err)
		}
		return parseTable(string(table))
	}
	return nil, nil
}

// parseTable reads what nvidia-smi writes: index, uuid, memory in MiB, and how
// many errors the memory could not correct. A GPU with such errors is left out:
// the control plane judges a machine by the GPUs it has.
func parseTable(table string) ([]device, error) {
	reader := csv.NewReader(strings.NewReader(table))
	reader.TrimLeadingSpace, reader.FieldsPerRecord = true, 4
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading the probe's table: %w", err)
	}
	devices, uuids, indexes := []device{}, map[string]bool{}, map[int]bool{}
	for _, row := range rows {
		index, err := strconv.Atoi(strings.TrimSpace(row[0]))
		memory, memoryErr := parseFigure(row[2])
		damage, damageErr := parseFigure(row[3])
		uuid := strings.TrimSpace(row[1])
		if errors.Join(err, memoryErr, damageErr) != nil || uuid == "" || uuids[uuid] || indexes[index] {
			return nil, fmt.Errorf("the probe's row %q makes no sense", row)
		}
		uuids[uuid], indexes[index] = true, true
		if damage == 0 {
			devices = append(devices, device{UUID: uuid, Index: index, MemoryMiB: memory})
		}
	}
	return devices, nil
}

// parseFigure reads a number; a GPU that has none of the kind says so in brackets.
func parseFigure(field string) (int, error) {
	field = strings.TrimSpace(field)
	if strings.HasPrefix(field, "[") {
		return 0, nil
	}
	return strconv.Atoi(field)
}
