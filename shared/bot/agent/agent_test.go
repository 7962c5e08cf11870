package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
)

func TestClassify_BrowsersAreHuman(t *testing.T) {
	t.Parallel()
	for name, ua := range browserAgents {
		t.Run(name, func(t *testing.T) {
			if got := agent.Classify(ua); got != (agent.Classification{}) {
				t.Errorf("%v %q for %q, want human", got.Kind, got.Name, ua)
			}
		})
	}
}

func TestClassify_DeclaredToolsAreTools(t *testing.T) {
	t.Parallel()
	for ua, name := range map[string]string{
		"curl/8.5.0":                         "curl",
		"python-requests/2.32.3":             "python-requests",
		"Go-http-client/2.0":                 "Go-http-client",
		"okhttp/4.12.0":                      "okhttp",
		"node":                               "node",
		"Acme hotel prices":                  "not-a-browser",
		"acme-http":                          "not-a-browser",
		"Acme/1":                             "not-a-browser",
		"acme-hotel-prices/2.1":              "not-a-browser",
		"Mozilla/5.0 Acme/0.1":               "no-platform",
		"Acme/1.0, Mozilla/5.0 (X)":          "before-mozilla",
		"Acme 1.0 (me@example.org)":          "contact",
		"Acme 1.0 (www.example.org)":         "contact",
		"Acme 1.0 (example.com)":             "contact",
		"Mozilla/5.0 (compatible; Acme/1.0)": "only-compatible",
		"Mozilla/5.0 (compatible; Acme/1.0; +https://example.org/)":                                                                   "contact",
		"Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; AcmeBot)":                                                                 "bot",
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/1 Firefox/140.0 HAL":                                                         "",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 AcmeCrawler": "crawl",
	} {
		t.Run(ua, func(t *testing.T) {
			got := agent.Classify(ua)
			if want := kindOf(name); got.Kind != want || got.Name != name {
				t.Errorf("%v %q, want %v %q", got.Kind, got.Name, want, name)
			}
		})
	}
}

// kindOf returns the kind of a classification by the name of its rule.
func kindOf(name string) agent.Kind {
	if name == "" {
		return agent.Human
	}
	return agent.Tool
}

func TestClassify_DrivenBrowserIsAutomation(t *testing.T) {
	t.Parallel()
	const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36"
	if got := agent.Classify(chrome); got.Kind != agent.Automation || got.Name != "headless" || got.Kind.Weight() != 0.4 {
		t.Errorf("%+v, want automation headless with the weight 0.4", got)
	}
	if got := agent.Classify(chrome + " AcmeBot/1.0"); got.Kind != agent.Tool {
		t.Errorf("an automated browser with a tool's name is %v, want tool", got.Kind)
	}
	if got := agent.Classify("puppeteer"); got.Kind != agent.Tool || got.Kind.Weight() != 0.5 {
		t.Errorf("a driver's name alone is %v, want tool", got.Kind)
	}
}

func TestClassify_EmptyAgent(t *testing.T) {
	t.Parallel()
	for _, ua := range []string{"", "  ", "\t\n", `""`} {
		t.Run(fmt.Sprintf("%q", ua), func(t *testing.T) {
			if got := agent.Classify(ua); got.Kind != agent.Empty || got.Name != "empty" || got.Kind.Weight() != 0.5 {
				t.Errorf("%+v, want empty with the weight 0.5", got)
			}
		})
	}
}

func TestClassify_NamesSearchEngines(t *testing.T) {
	t.Parallel()
	for ua, want := range map[string]string{
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": "googlebot",
		"Googlebot-Image/1.0": "googlebot",
		"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)":                                                                                                   "bingbot",
		"DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)":                                                                                                                "duckduckbot",
		"Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)":                                                                                                          "yandex",
		"Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)":                                                                                       "baidu",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)": "applebot",
		"Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)":                                                                                                        "",
		browserAgents["Chrome on Windows"]:                                                                                                                                          "",
	} {
		t.Run(ua, func(t *testing.T) {
			if got := agent.Classify(ua); got.Crawler != want {
				t.Errorf("crawler %q, want %q", got.Crawler, want)
			}
		})
	}
}

// A classification is stored for a year, so it must not contain text that a client sent.
func TestClassify_NeverRepeatsAgentText(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	for _, ua := range []string{
		canary + " " + canary, canary + "/1.0", canary + "bot/1.0", "bot-" + canary, "Mozilla/5.0 (compatible; " + canary + "/1.0)",
		"Mozilla/5.0 " + canary + "/1.0", canary + "@example.org", "http://" + canary + ".example", "curl/8 " + canary,
		"Googlebot/" + canary, canary + ", Mozilla/5.0 (X)", "HeadlessChrome " + canary,
	} {
		t.Run(ua, func(t *testing.T) {
			got := agent.Classify(ua)
			if got.Kind == agent.Human || got.Name == "" || strings.Contains(got.Name+got.Crawler, canary) {
				t.Errorf("%+v, want a rule name without %q", got, canary)
			}
		})
	}
}

func TestKind_HasName(t *testing.T) {
	t.Parallel()
	got := []string{agent.Human.String(), agent.Tool.String(), agent.Automation.String(), agent.Empty.String()}
	if diff := cmp.Diff([]string{"human", "tool", "automation", "empty"}, got); diff != "" {
		t.Error(diff)
	}
	if w := agent.Human.Weight(); w != 0 {
		t.Errorf("weight of human %v, want 0", w)
	}
	if agent.Release() != "crawler-user-agents 1.60.0" {
		t.Errorf("list %q, want crawler-user-agents 1.60.0", agent.Release())
	}
}

func FuzzClassify(f *testing.F) {
	for _, ua := range browserAgents {
		f.Add(ua)
	}
	for _, ua := range []string{"", "bot", "@", "a@b.cd", "android ;) build", "Mozilla/5.0 (compatible;", "(", "Current RSS Reader"} {
		f.Add(ua)
	}
	f.Fuzz(func(t *testing.T, ua string) {
		got := agent.Classify(ua)
		if (got.Kind == agent.Human) != (got.Name == "") || len(got.Name) > 60 {
			t.Fatalf("%+v, want a name of at most 60 bytes except for human", got)
		}
		if got.Kind != agent.Human && got.Kind != agent.Empty && agent.Classify(" "+ua+" ") != got {
			t.Fatalf("with blanks around: %+v, want %+v", agent.Classify(" "+ua+" "), got)
		}
		if !agent.Known(got.Name) {
			t.Fatalf("unknown rule name %q", got.Name)
		}
	})
}
