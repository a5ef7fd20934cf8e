package provisioners

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/core/money"
)

// Check returns KindBadSpec when the token or a tag is missing. A machine
// without tags could never be found again, so every adapter refuses to make one.
func (s Spec) Check(token string) error {
	for _, part := range []struct{ name, value string }{
		{"token", token}, {"type", s.Type}, {"owner", s.Owner}, {"node id", s.NodeID},
	} {
		if part.value == "" {
			return Errorf(KindBadSpec, "the %s is empty", part.name)
		}
	}
	return nil
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckName returns an error when name cannot be a provisioner's name. Names
// become file names, tags and metric labels.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("name %q: want 1 to 63 of a-z, 0-9 and -, not starting with -", name)
	}
	return nil
}

// Price is an hourly price as it is written in a configuration: dollars as a
// decimal, such as 2.49, read without ever becoming a float.
type Price money.MicroUSD

const (
	priceDigits = 6         // places of a micro-dollar
	maxDollars  = 1_000_000 // per hour: more is a typing error
)

// UnmarshalText reads dollars with up to six decimal places.
func (p *Price) UnmarshalText(text []byte) error {
	whole, fraction, _ := strings.Cut(string(text), ".")
	if len(fraction) > priceDigits {
		return fmt.Errorf("price %q: more than %d decimal places", text, priceDigits)
	}
	fraction += strings.Repeat("0", priceDigits-len(fraction))
	dollars, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || dollars > maxDollars {
		return fmt.Errorf("price %q: want dollars per hour between 0 and %d, such as 2.49", text, maxDollars)
	}
	micros, err := strconv.ParseUint(fraction, 10, 63)
	if err != nil {
		return fmt.Errorf("price %q: want dollars per hour, such as 2.49", text)
	}
	*p = Price(money.MicroUSD(dollars)*money.USD + money.MicroUSD(micros))
	return nil
}

// MarshalText writes the exact decimal.
func (p Price) MarshalText() ([]byte, error) { return []byte(money.MicroUSD(p).Decimal()), nil }
