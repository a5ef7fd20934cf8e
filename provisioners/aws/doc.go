// Package aws makes machines in Amazon EC2: on demand, on the spot market, in
// capacity reservations and in capacity blocks.
//
// The control plane's token is EC2's ClientToken, so the request contains
// nothing that the token does not determine: EC2 refuses a repeated token with
// other parameters. The machine's end (Spec.ExpiresAt) is therefore a tag that
// is set after the launch, and the machine ends by itself when it never comes.
// A token counts in one availability zone only, so that Create also looks for
// the token's machine in the whole region first.
//
// A machine proves its GPUs on its console, see the package guest.
//
// It is built with the tag clouds only.
package aws
