package asynqueue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDoubtsOfRedis: what INFO says of settings that lose messages is named with its fix.
func TestDoubtsOfRedis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, info string
		want       []string
	}{
		{"a good one", "# Server\r\nredis_version:7.0.15\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n",
			nil},
		{"it says little", "redis_version:?\r\n", nil},
		{"an old one", "redis_version:6.0.16\r\n", []string{"6.2 or later is needed"}},
		{"one that evicts", "redis_version:7.2.1\r\nmaxmemory_policy:allkeys-lru\r\n",
			[]string{"maxmemory-policy noeviction"}},
		{"a full one", "redis_version:6.2.0\r\nused_memory:95\r\nmaxmemory:100\r\n", []string{"raise maxmemory"}},
		{"a replica", "redis_version:6.2.0\r\nrole:slave\r\n", []string{"name the primary"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := parseInfo(c.info).findDoubts()
			require.Len(t, got, len(c.want))
			for i, want := range c.want {
				require.Contains(t, got[i], want)
			}
		})
	}
}
