package simcluster

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// z95 is the 95th percentile of the standard normal distribution: a log-normal
// with quantiles P50 and P95 has sigma = ln(P95/P50)/z95.
const z95 = 1.6448536269514722

// longestBoot keeps a drawn boot within the range of a Duration.
const longestBoot = 30 * 24 * time.Hour

// digestOf depends on the seed, the cluster's name and the parts alone, never on the
// order of calls: a repeated call and a restarted cluster draw the same.
func (c Config) digestOf(parts ...any) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %q %#v", c.Seed, c.Name, parts))
}

func (c Config) newRand(parts ...any) *rand.Rand {
	sum := c.digestOf(parts...)
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}

// drawBoot draws how long a node takes that is powered up at the time.
func (c Config) drawBoot(b Boot, node string, at time.Time) time.Duration {
	sigma := math.Log(float64(b.P95)/float64(b.P50)) / z95
	drawn := float64(b.P50) * math.Exp(sigma*c.newRand("boot", node, at.UnixMicro()).NormFloat64())
	return max(time.Millisecond, time.Duration(min(drawn, float64(longestBoot)))).Truncate(time.Microsecond)
}

// drawJitter draws by how much later an occurrence of the work comes.
func (c Config) drawJitter(w Work, occurrence int64) time.Duration {
	if w.Jitter == 0 {
		return 0
	}
	return time.Duration(c.newRand("jitter", w.Name, occurrence).Int64N(int64(w.Jitter))).Truncate(time.Microsecond)
}

// instanceID depends on the birth too, so that no id is ever used twice.
func (c Config) instanceID(token string, born time.Time) string {
	sum := c.digestOf("id", token, born.UnixMicro())
	return "simcluster-" + hex.EncodeToString(sum[:8])
}

// deviceUUID is that of a GPU, which stays with its node however often that boots.
func (c Config) deviceUUID(node string, index int) string {
	sum := c.digestOf("device", node, index)
	text := hex.EncodeToString(sum[:16])
	return "GPU-SIM-" + text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
