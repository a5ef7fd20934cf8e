// Package site is an installation on loopback that may be broken: PostgreSQL,
// Redis, forewarm servers and workers as processes of their own, a cloud that
// keeps its own bill, and a proxy in front of each of the three that forewarm
// calls.
//
// Everything it starts dies with this process, however that ends.
package site
