package agent

import "strings"

// contact finds an address that somebody may write to or look up: programs leave one, browsers never do.
func contact(t text) string {
	for _, mark := range [...]string{"http:/", "https:/", "www.", " dot com", "[at]"} {
		if strings.Contains(t.lower, mark) {
			return "contact"
		}
	}
	if domain(t.lower) {
		return "contact"
	}
	for at := 0; ; at++ {
		next := strings.IndexByte(t.lower[at:], '@')
		if next < 0 {
			return ""
		}
		if at += next; at > 0 && host(t.lower[at+1:]) {
			return "contact"
		}
	}
}

// host says whether a text begins with a host name. A version behind an @, as some browsers have, ends in digits.
func host(s string) bool {
	end := 0
	for end < len(s) && (letter(s[end]) || digit(s[end]) || s[end] == '.' || s[end] == '-') {
		end++
	}
	s = strings.TrimRight(s[:end], ".-")
	dot := strings.LastIndexByte(s, '.')
	return dot > 0 && len(s)-dot > 2 && !strings.ContainsAny(s[dot:], "0123456789")
}

// domain says whether a text has a word like example.com in it. That .NET begins a word is Microsoft's doing.
func domain(s string) bool {
	for at := 0; at < len(s); at++ {
		next := strings.IndexByte(s[at:], '.')
		if next < 0 {
			return false
		}
		at += next
		if at == 0 || !letter(s[at-1]) && !digit(s[at-1]) {
			continue
		}
		for _, top := range [...]string{"com", "org", "net"} {
			if end := at + 1 + len(top); strings.HasPrefix(s[at+1:], top) &&
				(end == len(s) || strings.IndexByte(" /);,", s[end]) >= 0) {
				return true
			}
		}
	}
	return false
}
