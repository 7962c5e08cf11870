package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfigTemplate_MatchesDeployedFile(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	want, err := configTemplate(filepath.Join(root, "api", "consumer.openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "terraform", "gateway.openapi.yaml.tftpl"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run ./dev gateway: the API document (-) and what is deployed (+) differ:\n%s", diff)
	}
}
