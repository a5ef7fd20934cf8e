package asynqueue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Inspect returns the version of the Redis server, and what in its settings or its memory
// will harm the queue, each with its fix. It changes nothing.
func (q *Queue) Inspect(ctx context.Context) (version string, doubts []string, err error) {
	if err := q.Ping(ctx); err != nil {
		return "", nil, err
	}
	// INFO is allowed where a provider of Redis forbids CONFIG.
	text, err := q.redis.Info(ctx).Result()
	if err != nil {
		return "", nil, fmt.Errorf("asking Redis at %s how it is: %w", q.redis.Options().Addr, err)
	}
	info := parseInfo(text)
	return info["redis_version"], info.findDoubts(), nil
}

// serverInfo is what INFO says, by name.
type serverInfo map[string]string

func parseInfo(text string) serverInfo {
	info := serverInfo{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func (i serverInfo) findDoubts() (doubts []string) {
	if version := i["redis_version"]; isOlder(version, 6, 2) {
		doubts = append(doubts, fmt.Sprintf("Redis %s is too old: 6.2 or later is needed", version))
	}
	if policy := i["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		doubts = append(doubts, fmt.Sprintf("maxmemory-policy is %s, which can evict a message that a worker holds: "+
			"run CONFIG SET maxmemory-policy noeviction", policy))
	}
	used, most := i.number("used_memory"), i.number("maxmemory")
	if most > 0 && used > most/10*9 {
		doubts = append(doubts, fmt.Sprintf("%d of %d bytes of maxmemory are used: raise maxmemory, or messages will be "+
			"refused", used, most))
	}
	if i["role"] == "slave" {
		doubts = append(doubts, "it is a replica, which takes no messages: name the primary in the URL")
	}
	return doubts
}

func (i serverInfo) number(name string) int64 {
	n, err := strconv.ParseInt(i[name], 10, 64)
	if err != nil {
		return 0 // this server does not say
	}
	return n
}

// isOlder reports whether a version such as 6.0.16 is before major.minor; what cannot be
// read is not.
func isOlder(version string, major, minor int) bool {
	var have [2]int
	if _, err := fmt.Sscanf(version, "%d.%d", &have[0], &have[1]); err != nil {
		return false
	}
	return have[0] < major || have[0] == major && have[1] < minor
}
