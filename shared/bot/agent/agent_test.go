package agent_test

import (
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
)

func TestClassify_BrowsersAreHuman(t *testing.T) {
	for what, ua := range browserAgents {
		if j := agent.Classify(ua); j != (agent.Classification{}) {
			t.Errorf("%s: %v %q for %q", what, j.Kind, j.Name, ua)
		}
	}
}

func TestClassify_DeclaredToolsAreTools(t *testing.T) {
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
		j := agent.Classify(ua)
		if want := kindOf(name); j.Kind != want || j.Name != name {
			t.Errorf("%v %q, want %q, for %q", j.Kind, j.Name, name, ua)
		}
	}
}

func kindOf(name string) agent.Kind {
	if name == "" {
		return agent.Human
	}
	return agent.Tool
}

func TestClassify_DrivenBrowserIsAutomation(t *testing.T) {
	const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36"
	if j := agent.Classify(chrome); j.Kind != agent.Automation || j.Name != "headless" || j.Kind.Weight() != 0.4 {
		t.Errorf("%+v", j)
	}
	if j := agent.Classify(chrome + " AcmeBot/1.0"); j.Kind != agent.Tool {
		t.Errorf("what declares itself as well is %v", j.Kind)
	}
	if j := agent.Classify("puppeteer"); j.Kind != agent.Tool || j.Kind.Weight() != 0.5 {
		t.Errorf("what is no browser at all is %v", j.Kind)
	}
}

func TestClassify_EmptyAgent(t *testing.T) {
	for _, ua := range []string{"", "  ", "\t\n", `""`} {
		if j := agent.Classify(ua); j.Kind != agent.Empty || j.Name != "empty" || j.Kind.Weight() != 0.5 {
			t.Errorf("%q: %+v", ua, j)
		}
	}
}

func TestClassify_NamesSearchEngines(t *testing.T) {
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
		if j := agent.Classify(ua); j.Crawler != want {
			t.Errorf("%q, want %q, for %q", j.Crawler, want, ua)
		}
	}
}

// What a judgement says is written down for a year, so it must not carry what a client made up.
func TestClassify_NeverRepeatsAgentText(t *testing.T) {
	const canary = "c4n4ry"
	for _, ua := range []string{
		canary + " " + canary, canary + "/1.0", canary + "bot/1.0", "bot-" + canary, "Mozilla/5.0 (compatible; " + canary + "/1.0)",
		"Mozilla/5.0 " + canary + "/1.0", canary + "@example.org", "http://" + canary + ".example", "curl/8 " + canary,
		"Googlebot/" + canary, canary + ", Mozilla/5.0 (X)", "HeadlessChrome " + canary,
	} {
		j := agent.Classify(ua)
		if j.Kind == agent.Human || j.Name == "" || strings.Contains(j.Name+j.Crawler, canary) {
			t.Errorf("%+v for %q", j, ua)
		}
	}
}

func TestKind_HasName(t *testing.T) {
	if got := []string{agent.Human.String(), agent.Tool.String(), agent.Automation.String(), agent.Empty.String()}; strings.Join(got, " ") != "human tool automation empty" {
		t.Error(got)
	}
	if w := agent.Human.Weight(); w != 0 {
		t.Errorf("a human weighs %v", w)
	}
	if agent.Release() != "crawler-user-agents 1.60.0" {
		t.Errorf("the list is %q", agent.Release())
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
		j := agent.Classify(ua)
		if (j.Kind == agent.Human) != (j.Name == "") || len(j.Name) > 60 {
			t.Fatalf("%+v", j)
		}
		if j.Kind != agent.Human && j.Kind != agent.Empty && agent.Classify(" "+ua+" ") != j {
			t.Fatal("blanks around it change the judgement")
		}
		if !agent.Known(j.Name) {
			t.Fatalf("%q is none of our names", j.Name)
		}
	})
}
