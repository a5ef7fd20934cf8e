package sqlledger

import (
	"encoding/json"
	"fmt"
	"time"
)

// toMicros returns a time as it is stored: microseconds in UTC since 1970; 0 for
// none.
func toMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// toTime is the reverse of toMicros.
func toTime(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// toDuration is the reverse of Duration.Microseconds.
func toDuration(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// packList returns a list as JSON. An empty list is read back as nil.
func packList[T any](list []T) string {
	if len(list) == 0 {
		return "[]"
	}
	text, err := json.Marshal(list)
	if err != nil {
		// Only lists of strings, whole numbers and the database's times are packed, which
		// can always be encoded.
		return "[]"
	}
	return string(text)
}

// unpackList is the reverse of packList.
func unpackList[T any](column, text string) ([]T, error) {
	if text == "[]" {
		return nil, nil
	}
	var list []T
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("reading column %s: %w", column, err)
	}
	return list, nil
}
