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

const modulePrefix = "melmastoon.ghasi.io/bff-consumer/shared/"

// Modules that several packages import, by their name in the plan.
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

// allowedImports lists what each package may import besides the standard library: packages of this
// module by directory, other modules by path. Sub-packages share the entry of their parent.
// Reviewers decide about new entries.
var allowedImports = map[string][]string{
	"gcptoken": {"cloud.google.com/go/compute/metadata", jsonv2, xsync},
	"gate":     {"bot", "challenge", "flags", "outbox", "problem", "ratelimit", "web", pgx, redis},
	"guest": { // eleven siblings: every request passes here; event and id are values, lua runs a pipeline
		"erasure", "event", "gate", "id", "lua", "outbox", "redisclient", "session", "tenants", "upstream", "web", pgx, redis,
	},
	"bot":         {"digest", "event", "flags", "id", "redisclient", "lua", "outbox", lru, pgx, redis},
	"erasure":     {"event", "idempotency", "outbox", "problem", "session", "web", "wishlist", pgx, redis},
	"cache":       {"redisclient", "lua", jsonv2, lru, "github.com/klauspost/compress", redis},
	"serviceauth": {jsonv2},
	"challenge": {
		"gcptoken", "timestamp", "keyring", "redisclient", "lua", "problem", jsonv2, lru, redis, breaker,
	},
	"compose":         {"cache", "redisclient", "locale", "money", "problem", "upstream", "view", jsonv2, redis, xsync},
	"testkit/deptest": nil,
	"digest":          nil,
	"event":           {"id", "timestamp", jsonv2, "github.com/santhosh-tekuri/jsonschema/v6"},
	"flags":           {"gcptoken", jsonv2},
	"testkit/functest": {
		"event", "id", "keyring", "testkit/pgtest", "testkit/redistest", "config", "postgres", "wiring", "testkit/localstores", "testkit/oidctest", "tenants", "lifecycle", "web",
		"github.com/getkin/kin-openapi", pgx, redis,
	},
	"geo":               nil,
	"handoff":           {"digest", "id", "timestamp", "keyring", "stay", jsonv2, pgx},
	"id":                {ulid},
	"idempotency":       {"timestamp", "redisclient", "lua", "postgres", "problem", "session/lock", jsonv2, pgx, redis},
	"inbox":             {"digest", "id", "postgres", "problem", "pubsubpush", "web", jsonv2, "github.com/santhosh-tekuri/jsonschema/v6", pgx},
	"timestamp":         nil,
	"keyring":           nil,
	"lifecycle":         nil,
	"redisclient":       {"otlp", redis},
	"locale":            {"golang.org/x/text"},
	"lua":               {redis},
	"migrations":        {pgx, "github.com/pressly/goose/v3"},
	"money":             nil,
	"testkit/otlptest":  {"go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"},
	"outbox":            {"event", "redisclient", "lua", "postgres", jsonv2, pgx, redis, breaker},
	"testkit/pgtest":    {"migrations", "testkit/localstores", pgx},
	"postgres":          {"gcptoken", "problem", "otlp", "cloud.google.com/go/cloudsqlconn", pgx},
	"problem":           {jsonv2},
	"pubsubpush":        {"web", jsonv2, "github.com/cloudevents/sdk-go/v2"},
	"ratelimit":         {"flags", "redisclient", "lua", lru, redis},
	"testkit/redistest": {"testkit/localstores", redis},
	"session": {
		"digest", "event", "id", "keyring", "redisclient", "locale", "lua", "money", "stay", "web", jsonv2,
		lru, "github.com/mileusna/useragent", ulid, pgx, redis,
	},
	"wiring": {
		"gate", "guest", "bot", "erasure", "cache", "challenge", "compose", "config", "event", "flags", "idempotency", "keyring", "lifecycle", "redisclient", "outbox", "postgres",
		"ratelimit", "session", "tenants", "upstream", "github.com/caarlos0/env/v11", pgx, redis,
	},
	"config":              {"redisclient", "postgres", redis},
	"testkit/oidctest":    {jsonv2},
	"stay":                {"problem"},
	"testkit/localstores": nil,
	"tenants":             {"id", "redisclient", "lua", pgx, redis, xsync},
	"upstream":            {"gcptoken", "geo", "id", "locale", "money", "stay", "otlp", jsonv2, breaker},
	"testkit/vectortest":  nil,
	"view":                {"geo", "timestamp", "locale", "money", "stay", "upstream", jsonv2},
	"otlp":                {"gcptoken", otel, "google.golang.org/protobuf"},
	"web":                 {"id", "lifecycle", "locale", "money", "problem", "otlp", jsonv2, ulid},
	"wishlist":            {"event", "id", "timestamp", "redisclient", "lua", "outbox", "session", jsonv2, pgx, redis},
}

// testkit is the prefix of packages that only _test.go files, local/, tools/ and other testkit
// packages may import.
const testkit = "testkit/"

func TestImportPlan_PackagesImportOnlyWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for _, complaint := range violations(t, os.DirFS("."), allowedImports) {
		t.Error(complaint)
	}
}

func TestImportPlan_DeployedPackagesUseNoTestPackage(t *testing.T) {
	t.Parallel()
	for importer, allowed := range allowedImports {
		for _, imported := range allowed {
			if strings.HasPrefix(imported, testkit) && !strings.HasPrefix(importer, testkit) {
				t.Errorf("%s is deployed and may import %s", importer, imported)
			}
		}
	}
}

// violations compares the imports of the packages below dir with the plan, in both directions.
func violations(t *testing.T, dir fs.FS, plan map[string][]string) (found []string) {
	t.Helper()
	byPackage := importsByPackage(t, dir)
	for _, pkg := range slices.Sorted(maps.Keys(byPackage)) {
		uses, planned := plan[pkg]
		if !planned {
			found = append(found, pkg+" is not in the plan")
			continue
		}
		for _, imported := range slices.Sorted(maps.Keys(byPackage[pkg])) {
			if !slices.ContainsFunc(uses, func(use string) bool { return covers(use, imported) }) {
				found = append(found, fmt.Sprintf("%s imports %s (%s), which is not in its plan", pkg, imported, byPackage[pkg][imported]))
			}
		}
		for _, use := range uses {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(byPackage[pkg])), func(imported string) bool { return covers(use, imported) }) {
				found = append(found, fmt.Sprintf("%s plans %s, which it does not import", pkg, use))
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(plan)) {
		if byPackage[pkg] == nil {
			found = append(found, pkg+" is in the plan, but there is no such package")
		}
	}
	return found
}

// packageOf returns the first directory of a file, or the first two below testkit.
func packageOf(file string) string {
	name, rest, _ := strings.Cut(file, "/")
	if name+"/" == testkit {
		below, _, _ := strings.Cut(rest, "/")
		return testkit + below
	}
	return name
}

func covers(use, imported string) bool {
	return imported == use || strings.HasPrefix(imported, use+"/")
}

// importsByPackage returns, for each package, the imports of its files besides the standard library
// and itself, each with the name of one importing file. Test files are not read: they may import
// anything.
func importsByPackage(t *testing.T, dir fs.FS) map[string]map[string]string {
	t.Helper()
	byPackage := map[string]map[string]string{}
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
		pkg := packageOf(file)
		if byPackage[pkg] == nil {
			byPackage[pkg] = map[string]string{}
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
			imported = strings.TrimPrefix(imported, modulePrefix)
			if !covers(pkg, imported) {
				byPackage[pkg][imported] = filepath.Base(file)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return byPackage
}

func TestImportPlan_DetectsMissingAndUnusedEntries(t *testing.T) {
	t.Parallel()
	source := fstest.MapFS{
		"id/id.go":             {Data: []byte("package id\n\nimport (\n\t\"fmt\"\n\t\"github.com/oklog/ulid/v2\"\n)\n")},
		"id/id_test.go":        {Data: []byte("package id\n\nimport \"example.com/anything\"\n")},
		"id/testdata/x.go":     {Data: []byte("package x\n\nimport \"example.com/anything\"\n")},
		"event/event.go":       {Data: []byte("package event\n\nimport (\n\t_ \"" + modulePrefix + "id\"\n\t_ \"" + modulePrefix + "event/deep\"\n)\n")},
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
		"an import of a sub-package": {map[string][]string{"id": {ulid}, "event": {"id"}},
			[]string{"event imports github.com/jackc/pgx/v5/pgxpool (deep.go), which is not in its plan"}},
		"a package that is not planned": {map[string][]string{"id": {ulid}, "event": {pgx}},
			[]string{"event imports id (event.go), which is not in its plan"}},
		"a planned import that is unused": {map[string][]string{"id": {ulid, pgx}, "event": {"id", pgx, "stay"}},
			[]string{"event plans stay, which it does not import", "id plans github.com/jackc/pgx/v5, which it does not import"}},
		"a name that only begins alike": {map[string][]string{"id": {"github.com/oklog/ul"}, "event": {"id", pgx}},
			[]string{"id imports github.com/oklog/ulid/v2 (id.go), which is not in its plan", "id plans github.com/oklog/ul, which it does not import"}},
		"an unknown package": {map[string][]string{"id": {ulid}}, []string{"event is not in the plan"}},
		"a package that is gone": {map[string][]string{"id": {ulid}, "event": {"id", pgx}, "util": nil},
			[]string{"util is in the plan, but there is no such package"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, violations(t, source, c.plan)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
