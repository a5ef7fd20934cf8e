// Package fault breaks a site by a schedule that its seed decides: which fault,
// when, for how long. What it hits is decided when it strikes, by the same
// seed, among what is not broken already.
package fault
