// Package forewarmv1connect is generated from node.proto: both sides of NodeService over HTTP/2.
package forewarmv1connect
