// Package forewarmv1connect is generated from node.proto and task.proto: both sides of
// NodeService and of TaskService over HTTP.
package forewarmv1connect
