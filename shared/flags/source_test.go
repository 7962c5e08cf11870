package flags

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// captureLog collects what is logged during a test.
func captureLog(t *testing.T) func() string {
	t.Helper()
	var log logBuffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(was) })
	return log.drain
}

type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *logBuffer) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

// drain empties the record.
func (r *logBuffer) drain() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.text.Reset()
	return r.text.String()
}

func TestStatic_ValuesNeverChange(t *testing.T) {
	s := Static(*nonDefaultValues())
	if got := s.Current(); got.BotMode != BotObserve || got != s.Current() {
		t.Errorf("%+v", got)
	}
}

func TestFile_RereadsAtMostTenTimesPerSecond(t *testing.T) {
	log := captureLog(t)
	path := filepath.Join(t.TempDir(), "flags.json")
	write := func(doc string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) { // the clock of the bubble stands unless we wait
		s := File(path)
		if s.Current().CampaignMode {
			t.Error("a missing file is not the defaults")
		}
		write(`{"campaignMode": true}`)
		if s.Current().CampaignMode {
			t.Error("read again at once")
		}
		<-time.After(fileInterval)
		if !s.Current().CampaignMode {
			t.Error("not read again after the interval")
		}

		first := s.Current()
		<-time.After(fileInterval)
		if s.Current() != first {
			t.Error("read again without a change")
		}

		write(`{"campaignMode": true, "botMode": "obs`)
		<-time.After(fileInterval)
		if s.Current() != first || log() == "" {
			t.Error("half a document took effect, or nobody was told")
		}
		<-time.After(fileInterval)
		s.Current()
		if text := log(); text != "" {
			t.Error("told twice: " + text)
		}

		write(`{"botMode": "observe"}`)
		<-time.After(fileInterval)
		if v := s.Current(); v.CampaignMode || v.BotMode != BotObserve || log() != "" {
			t.Errorf("%+v", v)
		}

		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		<-time.After(fileInterval)
		if v := s.Current(); v.BotMode != BotEnforce {
			t.Errorf("%+v", v)
		}
	})
}

func TestFile_UnreadableFileKeepsValues(t *testing.T) {
	log := captureLog(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "flags.json")
	if err := os.WriteFile(path, []byte(`{"campaignMode": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := File(path)
		if !s.Current().CampaignMode {
			t.Error("not read at the start")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil { // a directory can be looked at, but not read
			t.Fatal(err)
		}
		<-time.After(fileInterval)
		if !s.Current().CampaignMode || log() == "" {
			t.Error("lost, or nobody was told")
		}
	})
	if s := File(filepath.Join(path, "\x00")); s.Current().CampaignMode || log() == "" { // cannot be looked at
		t.Error("not the defaults, or nobody was told")
	}
}
