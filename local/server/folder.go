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

// RunFolder serves the entry points of one folder under functions/ in this process, against the stores and upstreams of the
// system that runs, or those the environment names, until ctx or that system ends. Several can run side by side, as the
// platform runs several instances.
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
	private, err := gateway.Operations(o.internalAPI())
	if err != nil {
		return err
	}
	functions, operations, err := folderFunctions(folder, append(operations, private...))
	if err != nil {
		return err
	}
	front, err := gateway.New("", operations, functions)
	if err != nil {
		return err
	}
	lender, _ := os.Stat(runfile.Path(state)) // before it is read: what replaces it meanwhile is another one
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
	mux.Handle("/", gateway.AllowLocalOrigins(front))
	s.addCleanup(serve(l, mux))
	o.printf("ready: http://%s (%s)", l.Addr(), folder)
	if len(env) == 0 || lender == nil { // nothing is borrowed
		<-ctx.Done()
		return nil
	}
	every := time.NewTicker(time.Second)
	defer every.Stop()
	return watchParent(ctx, state, lender, every.C)
}

// watchParent looks at each tick whether the system that run.json told of still is the one that runs. It returns nil when ctx
// ends. The next system has other ports, so there is no use in going on.
func watchParent(ctx context.Context, state string, lender fs.FileInfo, ticks <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
		now, err := os.Stat(runfile.Path(state))
		switch running, _ := runfile.Read(state); {
		case err != nil:
			return errors.New("the local system that this belongs to has stopped: start it, and then this again")
		case !now.ModTime().Equal(lender.ModTime()):
			return errors.New("the local system that this belongs to was started anew: start this again too")
		case errors.Is(syscall.Kill(running.PID, 0), syscall.ESRCH):
			return errors.New("the local system that this belongs to was killed: start it, and then this again")
		}
	}
}

// folderFunctions keeps the operations of one folder and the functions that serve them.
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
		return nil, nil, fmt.Errorf("there is no function folder %q; there is: %s", folder, strings.Join(folders, ", "))
	}
	var functions []*web.Function
	for _, f := range web.Functions() {
		if slices.ContainsFunc(operations, func(op gateway.Operation) bool { return op.Function == f.Name }) {
			functions = append(functions, f)
		}
	}
	return functions, operations, nil
}

// inheritedEnv is the environment of the running system; what is set here already wins.
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
