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

// captureLog replaces the default logger for a test. The returned function returns and removes the
// log so far.
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

// drain returns the text and empties the buffer.
func (r *logBuffer) drain() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.text.Reset()
	return r.text.String()
}

func TestStatic_ValuesNeverChange(t *testing.T) {
	t.Parallel()
	s := Static(*nonDefaultValues())
	if got := s.Current(); got.BotMode != BotObserve || got != s.Current() {
		t.Errorf("%+v, want the same values at each call", got)
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
	synctest.Test(t, func(t *testing.T) { // the clock advances only while the test waits
		s := File(path)
		if s.Current().CampaignMode {
			t.Error("a missing file does not mean the defaults")
		}
		write(`{"campaignMode": true}`)
		if s.Current().CampaignMode {
			t.Error("the file was read again within the interval")
		}
		<-time.After(fileInterval)
		if !s.Current().CampaignMode {
			t.Error("the file was not read again after the interval")
		}

		first := s.Current()
		<-time.After(fileInterval)
		if s.Current() != first {
			t.Error("an unchanged file was read again")
		}

		write(`{"campaignMode": true, "botMode": "obs`)
		<-time.After(fileInterval)
		if s.Current() != first || log() == "" {
			t.Error("an invalid document took effect or was not logged")
		}
		<-time.After(fileInterval)
		s.Current()
		if text := log(); text != "" {
			t.Error("logged twice: " + text)
		}

		write(`{"botMode": "observe"}`)
		<-time.After(fileInterval)
		if v := s.Current(); v.CampaignMode || v.BotMode != BotObserve || log() != "" {
			t.Errorf("%+v, want the bot mode observe only, without a log", v)
		}

		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		<-time.After(fileInterval)
		if v := s.Current(); v.BotMode != BotEnforce {
			t.Errorf("after the file was removed: %+v, want the defaults", v)
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
			t.Error("the file was not read at the start")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil { // Stat succeeds on a directory, ReadFile fails
			t.Fatal(err)
		}
		<-time.After(fileInterval)
		if !s.Current().CampaignMode || log() == "" {
			t.Error("the values were lost or the error was not logged")
		}
	})
	if s := File(filepath.Join(path, "\x00")); s.Current().CampaignMode || log() == "" { // Stat fails
		t.Error("not the defaults, or the error was not logged")
	}
}
