package problem

import (
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/money"
)

// Money renders an amount with two to six decimal places.
func Money(m money.MicroUSD) contract.Money {
	text := m.Decimal()
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > len(".00") {
		text = text[:len(text)-1]
	}
	return contract.Money{Amount: text, Currency: contract.Currency}
}
