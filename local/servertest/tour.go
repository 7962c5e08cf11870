package servertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TourScript returns the first shell script of a chapter of docs/tour.md.
func TourScript(t *testing.T, chapter string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), "docs", "tour.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := strings.Cut(string(text), "\n## "+chapter+"\n")
	_, from, _ = strings.Cut(from, "\n```sh\n")
	script, _, found := strings.Cut(from, "\n```\n")
	if !found {
		t.Fatalf("docs/tour.md has no script of %s", chapter)
	}
	return script
}

// RunJourney runs the script of "A guest's journey" against the server at url and checks its
// output. The script prints one line per step: the status first, a part of the response last. The
// one rejection is the replay of the handoff, and the last line is the bot_suspected event of that
// guest's session.
func RunJourney(t *testing.T, url, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-u", "-c", script)
	cmd.Env = append(os.Environ(), "service="+url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var refusals []string
	guest := "nobody"
	for step := range strings.Lines(string(out)) {
		step = strings.TrimSuffix(step, "\n")
		if !strings.HasPrefix(step, "2") {
			refusals = append(refusals, step)
		}
		if strings.HasSuffix(step, " ") {
			t.Errorf("%q says nothing", step)
		}
		if _, id, ok := strings.Cut(step, " session: "); ok {
			guest = id
		}
	}
	if len(refusals) != 1 || !strings.HasPrefix(refusals[0], "409 ") || !strings.HasSuffix(refusals[0], ".HANDOFF_REPLAYED") ||
		!strings.HasSuffix(string(out), "bot_suspected.v1 of "+guest+"\n") {
		t.Errorf("the walk:\n%s", out)
	}
}
