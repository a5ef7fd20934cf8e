package api

import (
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/server/problem"
)

// formatMoney renders an amount with two to six decimal places.
func formatMoney(m money.MicroUSD) contract.Money { return problem.Money(m) }

// parseMoney reads an amount whose form was checked by its pattern.
func parseMoney(m contract.Money) money.MicroUSD {
	whole, fraction, _ := strings.Cut(m.Amount, ".")
	n, _ := strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
	return money.MicroUSD(n)
}
