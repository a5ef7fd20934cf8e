package httpx

import (
	"math/rand/v2"
	"time"
)

// Backoff returns how long to wait before trying again after attempt failures
// (0 or less for the first): a random time from 0 to base·2^attempt, at most
// limit. Full jitter spreads the retries of many clients best; see M. Brooker,
// "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
//
// A nil rng gives the upper bound itself. A base or limit of zero or less gives
// zero.
func Backoff(attempt int, base, limit time.Duration, rng *rand.Rand) time.Duration {
	if base <= 0 || limit <= 0 {
		return 0
	}
	ceiling := min(base, limit)
	for ; attempt > 0 && ceiling < limit; attempt-- {
		if ceiling > limit/2 { // doubling it could overflow
			ceiling = limit
			break
		}
		ceiling *= 2
	}
	if rng == nil {
		return ceiling
	}
	return time.Duration(rng.Uint64N(uint64(ceiling) + 1))
}
