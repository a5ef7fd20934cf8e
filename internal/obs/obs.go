// Package obs is how the program tells what it does without telling secrets:
// structured logs, metrics, and the type that keeps a secret out of both.
package obs
