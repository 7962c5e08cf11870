package locale

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/text/language"
)

func TestParse_AcceptsOnlySupportedTags(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Tag{
		"en": "en", "EN": "en", "ps-af": "ps-AF", "FA-AF": "fa-AF", "fa-IR": "fa-IR", "tg-TJ": "tg-TJ", "ar": "ar", "ur-PK": "ur-PK",
		"ru": "ru", "fr": "fr", "prs": "fa-AF", "prs-AF": "fa-AF", "PRS-af": "fa-AF",
	} {
		t.Run(in, func(t *testing.T) {
			if got, err := Parse(in); err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
	for _, bad := range []string{"", "de", "fa", "ps", "en-US", "en_US", "fa_AF", "*", "prs-IR", " en", "en\x00", "xx-YY", strings.Repeat("e", 1<<16)} {
		if got, err := Parse(bad); !errors.Is(err, ErrNotSupported) {
			t.Errorf("Parse(%.20q): got %q, %v, want ErrNotSupported", bad, got, err)
		}
	}
}

func TestMatch_BestTagForHeader(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Tag{
		"en": "en", "en-US,en;q=0.9": "en", "fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5": "fr", "klingon!,ru;q=0.4": "ru", "ja, fr;q=0.3, ru;q=0.8": "ru",
		"prs-AF,prs;q=0.9,en;q=0.5": "fa-AF", "prs": "fa-AF", "fa": "fa-IR", "fa-AF": "fa-AF", "fa-IR,en": "fa-IR",
		"ps": "ps-AF", "ps-AF,fa-AF;q=0.8": "ps-AF", "ur": "ur-PK", "ur-IN": "ur-PK", "tg": "tg-TJ", "ar-EG,ar;q=0.9": "ar", "ru-RU": "ru",
		"de, fr;q=0.3": "fr", "en;q=0.3, ru": "ru", "zh-Hant-TW,fr;q=0.2": "fr",
	} {
		t.Run(in, func(t *testing.T) {
			if got, ok := Match(in); !ok || got != want {
				t.Errorf("got %q, %t, want %q", got, ok, want)
			}
		})
	}
	for _, unmatched := range []string{"", "uz-AF", "ja,ko;q=0.8", ";;;", "\xff\xfe", "x", strings.Repeat("a", 600), "en-\x00"} {
		if got, ok := Match(unmatched); ok || got != Default {
			t.Errorf("Match(%.20q): got %q, %t, want the default and false", unmatched, got, ok)
		}
	}
}

func TestMatch_CutsLongHeaderAtEntry(t *testing.T) {
	t.Parallel()
	if got, ok := Match(strings.Repeat("ja,", 15) + "fr"); !ok || got != "fr" {
		t.Errorf("match in entry 16: got %q, %t, want fr", got, ok)
	}
	if got, ok := Match(strings.Repeat("ja,", 16) + "fr"); ok {
		t.Errorf("match in entry 17: got %q, want none", got)
	}
	if got, ok := Match(strings.Repeat(",", 600) + "fr"); ok {
		t.Errorf("match after 512 bytes: got %q, want none", got)
	}
	if got, ok := Match("xx,fr;q=0.5," + strings.Repeat("en-", 300)); !ok || got != "fr" {
		t.Errorf("match before the limit: got %q, %t, want fr", got, ok)
	}
}

func TestMatch_EveryTagMatchesItself(t *testing.T) {
	t.Parallel()
	for _, tag := range Supported() {
		if got, ok := Match(string(tag) + ";q=0.9"); !ok || got != tag {
			t.Errorf("Match(%s): got %s, %t", tag, got, ok)
		}
	}
}

func TestMatchFirstEntry_AgreesWithMatcher(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"en", "ar", "ru", "fr", "ps", "tg", "ur", "fa"} {
		for _, region := range []string{"", "-AF", "-IR", "-PK", "-US", "-GB", "-EG", "-CA", "-IN", "-TJ", "-UZ", "-XK"} {
			header := base + region
			quick, ok := matchFirstEntry(header)
			if !ok {
				continue
			}
			for _, rest := range []string{"", ",en;q=0.9", ",fa-AF", ",de,fr;q=0.3"} {
				_, i, confidence := matcher().Match(parseAcceptLanguage(header + rest)...)
				if confidence == language.No || supported[i] != quick {
					t.Errorf("%s%s: got %s, want %s of the matcher (%s)", header, rest, quick, supported[i], confidence)
				}
			}
		}
	}
}

func TestSupported_ReturnsCopy(t *testing.T) {
	t.Parallel()
	Supported()[0] = "xx"
	if Supported()[0] != Default {
		t.Error("a caller changed the supported tags")
	}
}

func FuzzMatch_ReturnsSupportedTag(f *testing.F) {
	f.Add("prs-AF,prs;q=0.9,en;q=0.5")
	f.Fuzz(func(t *testing.T, header string) {
		tag, _ := Match(header)
		if _, err := Parse(string(tag)); err != nil {
			t.Fatalf("Match(%q): got %q, want a supported tag", header, tag)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for _, header := range []string{"ps-AF,fa;q=0.8", "de-CH,en;q=0.9,fr;q=0.8", strings.Repeat("ja,", 5000)} {
		b.Run(header[:5], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Match(header)
			}
		})
	}
}
