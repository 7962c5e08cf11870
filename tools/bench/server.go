package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// childVerb starts this program as one of the servers under load.
const childVerb = "bench-server"

// Kinds of server under load, each in a process of its own.
const (
	kindStatic   = "bare"     // net/http, writes a fixed response
	kindRedis    = "redis"    // net/http, reads a cache entry from Redis and writes it
	kindFunction = "function" // a function in the functions framework, as on the platform
)

// serveChild serves BENCH_KIND on 127.0.0.1:PORT until the process is killed.
func serveChild() error {
	debug.SetGCPercent(800) // the functions set the same value, so the comparison is fair
	addr, port := "127.0.0.1", os.Getenv("PORT")
	switch kind := os.Getenv("BENCH_KIND"); kind {
	case kindStatic:
		body, err := os.ReadFile(os.Getenv("BENCH_ENTRY"))
		if err != nil {
			return err
		}
		return http.ListenAndServe(addr+":"+port, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			writeJSON(w, body)
		}))
	case kindRedis:
		rdb, key := redisclient.Open(redisclient.Config{Addr: os.Getenv("REDIS_ADDR")}), os.Getenv("BENCH_KEY")
		return http.ListenAndServe(addr+":"+port, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			body, err := rdb.Get(r.Context(), key).Bytes()
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			writeJSON(w, body)
		}))
	case kindFunction:
		if os.Getenv("FUNCTION_TARGET") == "" {
			return errors.New("bench: FUNCTION_TARGET is not set")
		}
		return funcframework.StartHostPort(addr, port)
	default:
		return fmt.Errorf("bench: unknown kind of server %q", kind)
	}
}

func writeJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}
