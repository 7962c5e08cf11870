// Package lifecycle owns the start and the end of a function's process: the warm-up dials that run
// before the first request, and the drain that lets requests in flight finish after SIGTERM. It
// never handles a request and never reads the environment.
package lifecycle
