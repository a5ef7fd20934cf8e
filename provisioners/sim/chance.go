package sim

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

// newRand returns a random source that depends on the seed and the parts alone,
// never on the order of calls: a repeated call and a restarted cloud draw the
// same.
func newRand(seed uint64, parts ...any) *rand.Rand {
	sum := digestOf(seed, parts...)
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}

func digestOf(seed uint64, parts ...any) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %#v", seed, parts))
}

// drawBoot draws a boot time, cut to microseconds.
func (b Boot) drawBoot(r *rand.Rand) time.Duration {
	sigma := math.Log(float64(b.P95)/float64(b.P50)) / z95
	drawn := float64(b.P50) * math.Exp(sigma*r.NormFloat64())
	const longest = 30 * 24 * time.Hour // beyond it a float could leave the range of a Duration
	return max(b.Min, time.Duration(min(drawn, float64(longest)))).Truncate(time.Microsecond)
}

// drawReclaim draws when the provider takes a machine born at the time back; false
// means never.
func (o Offer) drawReclaim(r *rand.Rand, born time.Time) (time.Time, bool) {
	if o.ReclaimAfter == 0 {
		return time.Time{}, false
	}
	return born.Add(time.Duration(float64(o.ReclaimAfter) * r.ExpFloat64()).Truncate(time.Microsecond)), true
}

// soldOut reports whether the offer is out of stock at the time. Stock comes
// and goes in windows, because real stock-outs last.
func (c *Cloud) soldOut(offer Offer, now time.Time) bool {
	if offer.OutOfStock == 0 {
		return false
	}
	window := now.UnixMicro() / max(1, c.config.StockWindow.Microseconds())
	return newRand(c.config.Seed, "stock", offer.Type, offer.Region, window).Float64() < offer.OutOfStock
}

// instanceID depends on the birth too, so that no id is ever used twice.
func (c *Cloud) instanceID(token string, born time.Time) string {
	sum := digestOf(c.config.Seed, "id", c.config.Name, token, born.UnixMicro())
	return "sim-" + hex.EncodeToString(sum[:8])
}

func deviceUUID(instance string, index int) string {
	sum := digestOf(0, "device", instance, index)
	text := hex.EncodeToString(sum[:16])
	return "GPU-SIM-" + text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
