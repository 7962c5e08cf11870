package scale

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/terraform"
)

func TestTheModelKnowsWhatIsDeployed(t *testing.T) {
	plan, err := terraform.PlanOf(t.Context(), filepath.Join("..", ".."), t.TempDir(), "production")
	if errors.Is(err, terraform.ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	functions, err := plan.Functions()
	if err != nil {
		t.Fatal(err)
	}
	connections, known := 0, 0
	for _, f := range functions {
		each := cmp.Or(f.Environment["DATABASE_MAX_CONNS"], f.Environment["RELAY_MAX_CONNS"], map[string]string{"migrate": "2", "sweep": "1"}[f.Folder])
		pool, err := strconv.Atoi(each)
		if err != nil {
			t.Fatalf("the pool of %s is %q", f.Name, each)
		}
		connections += pool * f.MaxInstances
		if most, ok := mostInstances[strings.TrimPrefix(f.Name, "bff-consumer-")]; ok {
			known++
			if most != f.MaxInstances {
				t.Errorf("%s has %d instances at most, the model says %d", f.Name, f.MaxInstances, most)
			}
		}
		if run, err := time.ParseDuration(f.Environment["SWEEP_RUN"]); f.Folder == "sweep" && (err != nil || run.Seconds() != deployed.sweepSeconds) {
			t.Errorf("a sweep runs for %s", f.Environment["SWEEP_RUN"])
		}
	}
	if connections != deployed.connections || known != len(mostInstances) {
		t.Errorf("functions may open %d connections, the model says %d; %d of %d functions are known", connections, deployed.connections, known, len(mostInstances))
	}
	for _, c := range plan.Changes {
		var after struct {
			Memory   float64 `json:"memory_size_gb"`
			Settings []struct {
				Tier  string
				Flags []struct{ Name, Value string } `json:"database_flags"`
			}
		}
		if err := json.Unmarshal(c.Change.After, &after); err != nil {
			continue // of a type that is not read here
		}
		switch {
		case c.Type == "google_redis_instance" && after.Memory != deployed.redisGB:
			t.Errorf("Redis has %v GB", after.Memory)
		case c.Type == "google_sql_database_instance":
			if want := "db-custom-" + strconv.Itoa(int(deployed.postgresCPUs)) + "-" + strconv.Itoa(int(deployed.postgresGB*1024)); after.Settings[0].Tier != want {
				t.Errorf("Postgres is %s, the model says %s", after.Settings[0].Tier, want)
			}
			for _, flag := range after.Settings[0].Flags {
				if flag.Name == "max_connections" && flag.Value != strconv.Itoa(deployed.allowed) {
					t.Errorf("Postgres allows %s connections", flag.Value)
				}
			}
		}
	}
}
