//go:build !race

package ledger_test

// thorough: enough histories are lived through to meet everything that they must.
const thorough = true
