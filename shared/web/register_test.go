package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
)

// TestMain lets the test binary run as a deployed function whose configuration is wrong.
func TestMain(m *testing.M) {
	if os.Getenv("WEB_TEST_CHILD") == "" {
		os.Exit(m.Run())
	}
	Register("Broken", "GET /x", func(context.Context, *lifecycle.WarmUp) (Handler, error) {
		return nil, errors.Join(errors.New("REDIS_ADDR is missing"), errors.New("PEPPER is no base64"))
	})
	fmt.Println("registered without exiting")
}

// brokenFunction returns a command that runs this test binary as a function with a wrong
// configuration.
func brokenFunction(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "WEB_TEST_CHILD=broken")...)
	return cmd
}

func TestRegister_BadConfigurationExitsWithAllErrors(t *testing.T) {
	t.Parallel()
	cmd := brokenFunction(t, "FUNCTION_TARGET=Broken", "TRUSTED_HOPS=many")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, isExit := errors.AsType[*exec.ExitError](err); !isExit || exit.ExitCode() != 1 || stdout.Len() > 0 {
		t.Fatalf("run ended with %v and printed %q, want exit status 1 and no output", err, &stdout)
	}
	var record map[string]any
	if err := json.Unmarshal(stderr.Bytes(), &record); err != nil {
		t.Fatalf("log record: %v in %s", err, &stderr)
	}
	for _, part := range []string{"REDIS_ADDR is missing", "PEPPER is no base64", "TRUSTED_HOPS"} {
		if text, _ := record["err"].(string); !strings.Contains(text, part) {
			t.Errorf("field err is %q, want %q in it", text, part)
		}
	}
	if record["severity"] != "ERROR" {
		t.Errorf("severity is %v, want ERROR; record %v", record["severity"], record)
	}
}

func TestRegister_OpensOnlyTheTargetFunction(t *testing.T) {
	t.Parallel()
	out, err := brokenFunction(t, "FUNCTION_TARGET=Other").CombinedOutput()
	if want := "registered without exiting\n"; err != nil || string(out) != want {
		t.Errorf("run ended with %v and printed %q, want %q", err, out, want)
	}
}

func TestRegistry_SortsByName(t *testing.T) {
	t.Parallel()
	r := registry{}
	for _, name := range []string{"SearchMap", "Facets", "Search"} {
		r.add(New(name, "GET /"+name, opened(okHandler)))
	}
	var got []string
	for _, f := range r.sorted() {
		got = append(got, f.Name+" "+f.Method()+" "+f.Path())
	}
	if got, want := strings.Join(got, ", "), "Facets GET /Facets, Search GET /Search, SearchMap GET /SearchMap"; got != want {
		t.Errorf("functions are %q, want %q", got, want)
	}
}

func TestRegistry_PanicsOnDuplicateName(t *testing.T) {
	t.Parallel()
	r := registry{}
	r.add(New("Search", "GET /x", opened(okHandler)))
	mustPanic(t, func() { r.add(New("Search", "GET /y", opened(okHandler))) })
}

func TestNew_PanicsOnMalformedPattern(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]string{"no method": "/x", "empty": "", "no path": "GET x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustPanic(t, func() { New("A", pattern, opened(okHandler)) })
		})
	}
}

func mustPanic(t *testing.T, call func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("the call returned, want a panic")
		}
	}()
	call()
}

func TestFunctionOpen_ReportsConfigurationErrors(t *testing.T) {
	broken := errors.New("REDIS_ADDR is missing")
	f := New("Test", "GET /x", func(context.Context, *lifecycle.WarmUp) (Handler, error) { return nil, broken })
	if err := f.Open(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Open: %v, want %v", err, broken)
	}
	f = New("Test", "GET /x", opened(okHandler))
	for _, hops := range []string{"-1", "9", "x", "1.5"} {
		t.Setenv("TRUSTED_HOPS", hops)
		if err := f.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "TRUSTED_HOPS") {
			t.Errorf("Open with TRUSTED_HOPS=%s: %v, want an error that names TRUSTED_HOPS", hops, err)
		}
	}
	t.Setenv("TRUSTED_HOPS", "2")
	if err := f.Open(t.Context()); err != nil || f.state.Load().config.TrustedHops != 2 {
		t.Errorf("Open with TRUSTED_HOPS=2: %v, state %+v", err, f.state.Load())
	}
}

func TestFunctionOpen_PassesNoWarmUp(t *testing.T) {
	t.Parallel()
	f := New("Test", "GET /x", func(_ context.Context, warmUp *lifecycle.WarmUp) (Handler, error) {
		if warmUp != nil {
			t.Error("Open passes a WarmUp, want nil: the process does not listen for this function")
		}
		return okHandler, nil
	})
	if err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
}
