package shared

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "melmastoon.ghasi.io/bff-consumer/shared/"

// The modules that several rooms use, by the name the plan has for them.
const (
	jsonv2  = "github.com/go-json-experiment/json"
	redis   = "github.com/redis/go-redis/v9"
	pgx     = "github.com/jackc/pgx/v5"
	ulid    = "github.com/oklog/ulid/v2"
	breaker = "github.com/sony/gobreaker/v2"
	lru     = "github.com/hashicorp/golang-lru/v2"
	xsync   = "golang.org/x/sync"
	otel    = "go.opentelemetry.io/otel"
)

// plan is what each room may import besides the standard library: rooms by their name, modules by their
// path. A room that needs another opens a conversation, not only an import.
var plan = map[string][]string{
	"account": {"cloud.google.com/go/compute/metadata", jsonv2, xsync},
	"admission": {
		"bot", "burial", "cache", "challenge", "event", "flags", "id", "keyspace", "locale", "lua", "money", "outbox", "problem",
		"ratelimit", "session", "tenants", "upstream", "web", pgx, redis,
	},
	"bot":    {"digest", "event", "flags", "id", "keyspace", "lua", "outbox", lru, pgx, redis},
	"burial": {"event", "idempotency", "outbox", "session", "wishlist", pgx, redis},
	"cache":  {"keyspace", "lua", jsonv2, lru, "github.com/klauspost/compress", redis},
	"caller": {jsonv2},
	"challenge": {
		"account", "instant", "keyring", "keyspace", "lua", "problem", jsonv2, lru, redis, breaker,
	},
	"compose": {"cache", "keyspace", "locale", "money", "problem", "upstream", "view", jsonv2, redis, xsync},
	"deptest": nil,
	"digest":  nil,
	"event":   {"id", "instant", jsonv2, "github.com/santhosh-tekuri/jsonschema/v6"},
	"flags":   {"account", jsonv2},
	"functest": {
		"event", "id", "keyring", "pgtest", "redistest", "setup", "stores", "tenants", "web",
		"github.com/getkin/kin-openapi", pgx, redis,
	},
	"geo":         nil,
	"handoff":     {"digest", "id", "instant", "keyring", "stay", jsonv2, pgx},
	"id":          {ulid},
	"idempotency": {"instant", "keyspace", "lua", "postgres", "problem", "session/turn", jsonv2, pgx, redis},
	"inbox":       {"digest", "id", "postgres", "problem", "push", "web", jsonv2, "github.com/santhosh-tekuri/jsonschema/v6", pgx},
	"instant":     nil,
	"keyring":     nil,
	"keyspace":    {"telemetry", redis},
	"locale":      {"golang.org/x/text"},
	"lua":         {redis},
	"migrations":  {pgx, "github.com/pressly/goose/v3"},
	"money":       nil,
	"otlptest":    {"go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"},
	"outbox":      {"event", "keyspace", "lua", "postgres", jsonv2, pgx, redis, breaker},
	"pgtest":      {"migrations", "stores", pgx},
	"postgres":    {"account", "problem", "telemetry", "cloud.google.com/go/cloudsqlconn", pgx},
	"problem":     {jsonv2},
	"push":        {"web", jsonv2, "github.com/cloudevents/sdk-go/v2"},
	"ratelimit":   {"flags", "keyspace", "lua", lru, redis},
	"redistest":   {"stores", redis},
	"session": {
		"digest", "event", "id", "keyring", "keyspace", "locale", "lua", "money", "stay", "web", jsonv2,
		lru, "github.com/mileusna/useragent", ulid, pgx, redis,
	},
	"setup": {
		"admission", "bot", "burial", "cache", "challenge", "compose", "event", "flags", "idempotency", "keyring", "keyspace", "outbox", "postgres",
		"ratelimit", "session", "tenants", "upstream", "web", "github.com/caarlos0/env/v11", pgx, redis,
	},
	"stay":       {"problem"},
	"stores":     nil,
	"tenants":    {"id", "keyspace", "lua", pgx, redis, xsync},
	"upstream":   {"account", "geo", "id", "locale", "money", "stay", "telemetry", jsonv2, breaker},
	"vectortest": nil,
	"view":       {"geo", "instant", "locale", "money", "stay", "upstream", jsonv2},
	"telemetry":  {"account", otel},
	"web":        {"id", "locale", "money", "problem", "telemetry", jsonv2, ulid},
	"wishlist":   {"event", "id", "instant", "keyspace", "lua", "outbox", "session", jsonv2, pgx, redis},
}

// testRooms are for _test.go files, and for each other.
var testRooms = []string{"deptest", "functest", "otlptest", "pgtest", "redistest", "vectortest"}

func TestRoomsImportOnlyWhatThePlanSays(t *testing.T) {
	for _, complaint := range complaints(t, os.DirFS("."), plan) {
		t.Error(complaint)
	}
}

func TestNoRoomThatIsDeployedUsesATestRoom(t *testing.T) {
	for room, uses := range plan {
		for _, used := range uses {
			if slices.Contains(testRooms, used) && !slices.Contains(testRooms, room) {
				t.Errorf("%s may import %s", room, used)
			}
		}
	}
}

// complaints compares the imports of the rooms below dir with the plan, both ways.
func complaints(t *testing.T, dir fs.FS, plan map[string][]string) (found []string) {
	t.Helper()
	rooms := imports(t, dir)
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		uses, planned := plan[room]
		if !planned {
			found = append(found, room+" is not in the plan")
			continue
		}
		for _, imported := range slices.Sorted(maps.Keys(rooms[room])) {
			if !slices.ContainsFunc(uses, func(use string) bool { return covers(use, imported) }) {
				found = append(found, fmt.Sprintf("%s imports %s (%s), which is not in its plan", room, imported, rooms[room][imported]))
			}
		}
		for _, use := range uses {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(rooms[room])), func(imported string) bool { return covers(use, imported) }) {
				found = append(found, fmt.Sprintf("%s plans %s, which it does not import", room, use))
			}
		}
	}
	for _, room := range slices.Sorted(maps.Keys(plan)) {
		if rooms[room] == nil {
			found = append(found, room+" is in the plan, but there is no such room")
		}
	}
	return found
}

func covers(use, imported string) bool {
	return imported == use || strings.HasPrefix(imported, use+"/")
}

// imports is, for each room, what its files import besides the standard library and itself, and in which
// file. Tests are left out: they may use what they like.
func imports(t *testing.T, dir fs.FS) map[string]map[string]string {
	t.Helper()
	rooms := map[string]map[string]string{}
	err := fs.WalkDir(dir, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "vendor") {
			return fs.SkipDir
		}
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		room, _, _ := strings.Cut(file, "/")
		if rooms[room] == nil {
			rooms[room] = map[string]string{}
		}
		source, err := fs.ReadFile(dir, file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") { // the standard library
				continue
			}
			imported = strings.TrimPrefix(imported, module)
			if !covers(room, imported) {
				rooms[room][imported] = filepath.Base(file)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rooms
}

func TestThePlanIsHeldBothWays(t *testing.T) {
	house := fstest.MapFS{
		"id/id.go":             {Data: []byte("package id\n\nimport (\n\t\"fmt\"\n\t\"github.com/oklog/ulid/v2\"\n)\n")},
		"id/id_test.go":        {Data: []byte("package id\n\nimport \"example.com/anything\"\n")},
		"id/testdata/x.go":     {Data: []byte("package x\n\nimport \"example.com/anything\"\n")},
		"event/event.go":       {Data: []byte("package event\n\nimport (\n\t_ \"" + module + "id\"\n\t_ \"" + module + "event/deep\"\n)\n")},
		"event/deep/deep.go":   {Data: []byte("package deep\n\nimport _ \"github.com/jackc/pgx/v5/pgxpool\"\n")},
		"event/schemas/v1.txt": {Data: []byte("not Go")},
	}
	for name, c := range map[string]struct {
		plan map[string][]string
		want []string
	}{
		"as planned": {map[string][]string{"id": {ulid}, "event": {"id", pgx}}, nil},
		"an import that is not planned": {map[string][]string{"id": nil, "event": {"id", pgx}},
			[]string{"id imports github.com/oklog/ulid/v2 (id.go), which is not in its plan"}},
		"one deeper in the room": {map[string][]string{"id": {ulid}, "event": {"id"}},
			[]string{"event imports github.com/jackc/pgx/v5/pgxpool (deep.go), which is not in its plan"}},
		"a room that is not planned": {map[string][]string{"id": {ulid}, "event": {pgx}},
			[]string{"event imports id (event.go), which is not in its plan"}},
		"a plan that nobody uses": {map[string][]string{"id": {ulid, pgx}, "event": {"id", pgx, "stay"}},
			[]string{"event plans stay, which it does not import", "id plans github.com/jackc/pgx/v5, which it does not import"}},
		"a name that only begins alike": {map[string][]string{"id": {"github.com/oklog/ul"}, "event": {"id", pgx}},
			[]string{"id imports github.com/oklog/ulid/v2 (id.go), which is not in its plan", "id plans github.com/oklog/ul, which it does not import"}},
		"a room unknown to the plan": {map[string][]string{"id": {ulid}}, []string{"event is not in the plan"}},
		"a room that is gone": {map[string][]string{"id": {ulid}, "event": {"id", pgx}, "util": nil},
			[]string{"util is in the plan, but there is no such room"}},
	} {
		if diff := cmp.Diff(c.want, complaints(t, house, c.plan)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
