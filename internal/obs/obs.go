// Package obs is how the program reports what it does without revealing
// secrets: structured logs, metrics, and the type that keeps a secret out of
// both.
package obs
