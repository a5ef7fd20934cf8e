// Package site is an installation on loopback that may be broken: PostgreSQL,
// Redis, forewarm servers and workers as processes of their own, a cloud that
// keeps its own bill, a rack of machines with the node daemon, and a proxy in
// front of each of what forewarm calls, and between daemons and servers.
//
// Everything it starts dies with this process, however that ends.
package site
