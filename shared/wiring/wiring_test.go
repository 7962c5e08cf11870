package wiring

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

const secret = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"

// validSettings is an environment that works, with everything at one address.
func validSettings(addr string) map[string]string {
	return map[string]string{
		"REDIS_ADDR": addr, "DATABASE_URL": "postgres://u@" + addr + "/d", "UPSTREAM_AUTH": "none",
		"SEARCH_URL": "http://" + addr, "PRICING_URL": "http://" + addr, "PROPERTY_URL": "http://" + addr, "THEME_URL": "http://" + addr,
		"SESSION_KEYS": "k1:" + secret, "PEPPERS": "p1:" + secret,
	}
}

func TestFromEnv_NamesEveryMissingSetting(t *testing.T) {
	for name := range validSettings("") {
		t.Setenv(name, "")
	}
	_, err := FromEnv(context.Background(), nil)
	if err == nil {
		t.Fatal("an empty environment is enough")
	}
	for _, name := range []string{"REDIS_ADDR", "SEARCH_URL", "PRICING_URL", "PROPERTY_URL", "THEME_URL", "SESSION_KEYS", "PEPPERS"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}

func TestFromEnv_RejectsInvalidSettings(t *testing.T) {
	for name, wrong := range map[string][2]string{
		"an unknown way to authenticate": {"UPSTREAM_AUTH", "maybe"},
		"a malformed URL":                {"SEARCH_URL", "search"},
		"a short key":                    {"SESSION_KEYS", "k1:QUFB"},
		"a key without a name":           {"PEPPERS", secret},
		"no database":                    {"DATABASE_URL", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range validSettings("127.0.0.1:1") {
				t.Setenv(k, v)
			}
			t.Setenv(wrong[0], wrong[1])
			_, err := FromEnv(context.Background(), nil)
			if err == nil {
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestFromEnv_DialsNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var dialled atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			conn.Close()
		}
	}()
	for k, v := range validSettings(l.Addr().String()) {
		t.Setenv(k, v)
	}
	p, err := FromEnv(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.DB.Close()
	p.Redis.Close()
	l.(*net.TCPListener).SetDeadline(time.Now())
	l.Close()
	<-done
	if n := dialled.Load(); n != 0 {
		t.Errorf("construction dialled %d times", n)
	}
}

func TestFromEnv_EventValidationNeedsLinkedSchemas(t *testing.T) {
	for k, v := range validSettings("127.0.0.1:1") {
		t.Setenv(k, v)
	}
	t.Setenv("VALIDATE_EVENTS", "true")
	if _, err := FromEnv(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "event/strict") {
		t.Errorf("without the schemas: %v", err)
	}
	event.Validator = func(event.Event) error { return nil }
	defer func() { event.Validator = nil }()
	if _, err := FromEnv(context.Background(), nil); err != nil {
		t.Error(err)
	}
}
