//go:build !race

package verbs_test

// thorough: enough histories are lived through to meet everything that they must.
const thorough = true
