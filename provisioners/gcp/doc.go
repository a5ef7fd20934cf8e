// Package gcp makes machines in Google Compute Engine.
//
// A machine's name is made from its token, so that no zone ever holds two for
// one token; the API's requestId is made from the token too. Google forgets
// names once a machine is deleted, so the token of an ended machine is known by
// two things: the zone's operations, which Google keeps for an hour at least,
// and a state file. What happened to a machine that never came to be is read
// from its insert operation, where stock-outs are reported.
//
// Which GPUs a machine has, and that a spot machine is being taken back, can
// only be seen from inside it: package guest is the start-up script that writes
// both where this package reads them.
//
// It is built with the tag clouds only.
package gcp
