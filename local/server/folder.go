package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/runfile"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// RunFolder serves the functions of one folder under functions/ in this process, until ctx ends.
// The functions use the stores and upstreams of the running local system; environment variables
// that are already set take precedence. Several processes can serve the same folder, like several
// instances on the platform.
//
// RunFolder returns nil when ctx ends. It returns an error if no system runs and SEARCH_URL is not
// set, if the folder does not exist, if the port is in use, or within about one second after the
// running system has stopped or restarted.
func RunFolder(ctx context.Context, o Options, folder string) error {
	s := &Server{}
	defer s.Stop()
	state, err := filepath.Abs(o.state())
	if err != nil {
		return err
	}
	operations, err := gateway.Operations(o.publicAPI())
	if err != nil {
		return err
	}
	internal, err := gateway.Operations(o.internalAPI())
	if err != nil {
		return err
	}
	functions, operations, err := folderFunctions(folder, append(operations, internal...))
	if err != nil {
		return err
	}
	routes, err := gateway.New("", operations, functions)
	if err != nil {
		return err
	}
	// before inheritedEnv reads the file, so a restart in between is noticed
	parent, _ := os.Stat(runfile.Path(state))
	env, err := inheritedEnv(state)
	if err != nil {
		return err
	}
	l, err := listen(o.Port)
	if err != nil {
		return err
	}
	log := filepath.Join(state, "log", fmt.Sprintf("%s-%s.jsonl", folder, l.Addr().String()[len("127.0.0.1:"):]))
	if err := s.openFunctions(ctx, functions, env, log); err != nil {
		l.Close()
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_local/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("/", gateway.AllowLocalOrigins(routes))
	s.addCleanup(serve(l, mux))
	o.printf("ready: http://%s (%s)", l.Addr(), folder)
	if len(env) == 0 || parent == nil { // independent of a running system
		<-ctx.Done()
		return nil
	}
	every := time.NewTicker(time.Second)
	defer every.Stop()
	return watchParent(ctx, state, parent, every.C)
}

// watchParent checks at each tick that the system of run.json still runs. It returns nil when ctx
// ends, and an error when the system has stopped, restarted or crashed, because the next system has
// other ports. parent is the file information of run.json from before it was read.
func watchParent(ctx context.Context, state string, parent fs.FileInfo, ticks <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
		now, err := os.Stat(runfile.Path(state))
		switch running, _ := runfile.Read(state); {
		case err != nil:
			return errors.New("the local system has stopped: start the system, then start this process again")
		case !now.ModTime().Equal(parent.ModTime()):
			return errors.New("the local system was restarted: start this process again")
		case errors.Is(syscall.Kill(running.PID, 0), syscall.ESRCH):
			return errors.New("the local system was killed: start the system, then start this process again")
		}
	}
}

// folderFunctions returns the operations of one folder and their functions. The error for an
// unknown folder lists all folders.
func folderFunctions(folder string, all []gateway.Operation) ([]*web.Function, []gateway.Operation, error) {
	var operations []gateway.Operation
	var folders []string
	for _, op := range all {
		if op.Folder == folder {
			operations = append(operations, op)
		}
		if !slices.Contains(folders, op.Folder) {
			folders = append(folders, op.Folder)
		}
	}
	if len(operations) == 0 {
		return nil, nil, fmt.Errorf("unknown function folder %q; the folders are %s", folder, strings.Join(folders, ", "))
	}
	var functions []*web.Function
	for _, f := range web.Functions() {
		if slices.ContainsFunc(operations, func(op gateway.Operation) bool { return op.Function == f.Name }) {
			functions = append(functions, f)
		}
	}
	return functions, operations, nil
}

// inheritedEnv returns the variables of the running system that are not set in this process. It
// returns an error if no system runs and SEARCH_URL is not set.
func inheritedEnv(state string) (map[string]string, error) {
	running, ok := runfile.Read(state)
	if !ok && os.Getenv("SEARCH_URL") == "" {
		return nil, fmt.Errorf("no local system runs with the state %s: start it with ./dev run, or set REDIS_ADDR, DATABASE_URL, SEARCH_URL, PRICING_URL, PROPERTY_URL, THEME_URL, UPSTREAM_AUTH, SESSION_KEYS, PEPPERS and FLAGS_FILE; for handoffs also HANDOFF_KEYS, for consume also CALLER_ISSUER, CALLER_KEYS, CALLER_AUDIENCE and CALLER_ACCOUNTS, for relay also PUBSUB_EMULATOR_HOST and PUBSUB_PROJECT", state)
	}
	env := map[string]string{}
	for name, value := range running.Env {
		if os.Getenv(name) == "" {
			env[name] = value
		}
	}
	return env, nil
}
