package wishlist

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

func TestWishlist_IsolatedBetweenGuests(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	mine, other := h.newGuest(), h.newGuest()
	h.MustDo(201, "POST", "/wishlist", mine, addBody(1, `,"note":"secret"`))
	for name, a := range map[string]*functest.Result{
		"another guest":        h.MustDo(200, "GET", "/wishlist", other, ""),
		"no cookie":            h.MustDo(200, "GET", "/wishlist", "", ""),
		"by parameter":         h.MustDo(422, "GET", "/wishlist?guestSessionId="+mine+"&gms_id="+mine, other, ""),
		"by header":            h.MustDo(200, "GET", "/wishlist", other, "", "X-Guest-Session-Id", mine, "Authorization", "Bearer "+mine),
		"from another browser": h.MustDo(200, "GET", "/wishlist", mine, "", "User-Agent", functest.IPhone),
		"with two cookies":     h.MustDo(200, "GET", "/wishlist", "", "", "Cookie", "gms_id="+mine+"; gms_id="+mine),
		"a forged id":          h.MustDo(200, "GET", "/wishlist", id.New(id.Session, h.Now()), ""),
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(a.Text, "secret") || a.SessionCookie() == mine {
				t.Errorf(`got %s; want body without "secret", cookie != %v`, a.Text, mine)
			}
		})
	}
	h.MustDo(204, "DELETE", "/wishlist/"+propertyID(1), other, "")
	h.MustDo(204, "DELETE", "/wishlist/"+propertyID(1), mine, "", "User-Agent", functest.IPhone)
	if l := h.getList(mine); l.Size != 1 {
		t.Errorf("after requests of others: got %+v; want 1 item", l)
	}
	for _, body := range []string{addBody(2, `,"guestSessionId":"`+mine+`"`), addBody(2, `,"sessionId":"`+mine+`"`)} {
		if a := h.Do("POST", "/wishlist", other, body); a.StatusCode != 422 {
			t.Errorf("got %d %s; want status 422", a.StatusCode, a.Text)
		}
	}
}

func TestWishlist_LogsAndEventsContainNoPersonalData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.MustDo(201, "POST", "/wishlist", "", addBody(1, `,"note":"canary words"`), "X-Forwarded-For", "203.0.113.77", "User-Agent", functest.Firefox+" canary-agent")
	cookie := a.SessionCookie()
	h.getList(cookie, "User-Agent", functest.Firefox+" canary-agent")
	h.MustDo(204, "DELETE", "/wishlist/"+propertyID(1), cookie, "", "User-Agent", functest.Firefox+" canary-agent")
	h.Do("POST", "/wishlist", cookie, `{"canary-field":1}`)
	h.Do("DELETE", "/wishlist/canary-path", cookie, "")
	for _, e := range h.Events("") {
		text, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "canary") || strings.Contains(string(text), "203.0.113") {
			t.Errorf("got %s; want no canary and no address", text)
		}
	}
	for _, canary := range []string{"canary", "203.0.113", cookie, "Firefox", propertyID(1)} {
		if strings.Contains(h.Log.String(), canary) {
			t.Errorf("found %q in the log", canary)
		}
	}
}

func TestWishlistAdd_NoteKeepsUnicode(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	for n, c := range []struct {
		note string
		want int
	}{
		{strings.Repeat("ک", 280), 201}, {strings.Repeat("ک", 281), 422}, {"می\u200cخواهم", 201}, {"🏨👨\u200d👩\u200d👧", 201}, {"", 201},
		{`<script>alert(1)</script>`, 201}, {`'; DROP TABLE wishlist_anonymous; --`, 201}, {"a\tb", 422}, {"a\u0000b", 422}, {"a\u0085b", 422},
	} {
		body := addBody(n, fmt.Sprintf(`,"note":%s`, jsonQuote(c.note)))
		a := h.Do("POST", "/wishlist", cookie, body)
		if a.StatusCode != c.want || c.want == 422 && a.Errors[0].Field != "note" {
			t.Errorf("note %q: got %d %s; want status %v", c.note, a.StatusCode, a.Text, c.want)
		}
		if c.want == 201 {
			if l := h.getList(cookie); l.Items[0].Note != c.note {
				t.Errorf("got note %q; want %q", l.Items[0].Note, c.note)
			}
		}
		h.Advance(time.Second)
	}
}

// jsonQuote encodes s as a JSON string, with control characters as \u escapes.
func jsonQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		if r == '"' || r == '\\' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	b.WriteByte('"')
	return b.String()
}

func TestWishlist_MalformedRequestNamesField(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	with := func(old, new string) string { return strings.Replace(addBody(1), old, new, 1) }
	table := map[string]struct{ body, field string }{
		"empty":                  {"", "body"},
		"null":                   {"null", "body"},
		"an array":               {"[]", "body"},
		"a number":               {"7", "body"},
		"cut":                    {addBody(1)[:20], ""},
		"two values":             {addBody(1) + addBody(2), ""},
		"nothing":                {"{}", "propertyId"},
		"no property":            {with(`"propertyId":"`+propertyID(1)+`",`, ""), "propertyId"},
		"no tenant":              {with(`"tenantId":"`+tenantID(1)+`",`, ""), "tenantId"},
		"no source":              {with(`,"source":"detail"`, ""), "source"},
		"a property of a tenant": {with(propertyID(1), tenantID(1)), "propertyId"},
		"a property in lower":    {with(propertyID(1), "ppt_"+strings.Repeat("a", 26)), "propertyId"},
		"a property that is big": {with(propertyID(1), "ppt_8"+strings.Repeat("0", 25)), "propertyId"},
		"a property with a tail": {with(propertyID(1), propertyID(1)+"0"), "propertyId"},
		"a property as number":   {with(`"`+propertyID(1)+`"`, "1"), "propertyId"},
		"a property as list":     {with(`"`+propertyID(1)+`"`, "[]"), "propertyId"},
		"a property with SQL":    {with(propertyID(1), "ppt_' OR 1=1 --"), "propertyId"},
		"a property with NUL":    {with(propertyID(1), `ppt_\u0000`), "propertyId"},
		"a tenant with U":        {with(tenantID(1), "tnt_"+strings.Repeat("U", 26)), "tenantId"},
		"a tenant is null":       {with(`"`+tenantID(1)+`"`, "null"), "tenantId"},
		"an unknown source":      {with("detail", "basket"), "source"},
		"a source in capitals":   {with("detail", "Detail"), "source"},
		"a source as list":       {with(`"detail"`, `["detail"]`), "source"},
		"a note as number":       {addBody(1, `,"note":5`), "note"},
		"a note as null":         {addBody(1, `,"note":null`), "note"},
		"half a surrogate":       {addBody(1, `,"note":"\ud800"`), "note"},
		"invalid UTF-8":          {addBody(1, ",\"note\":\"\xff\""), "note"},
		"a note too long":        {addBody(1, `,"note":"`+strings.Repeat("x", 281)+`"`), "note"},
		"an unknown field":       {addBody(1, `,"listing":{}`), "listing"},
		"a field in other case":  {addBody(1, `,"Note":"x"`), "Note"},
		"a duplicate":            {addBody(1, `,"source":"map"`), "source"},
		"deep":                   {addBody(1, `,"note":`+strings.Repeat("[", 40)+strings.Repeat("]", 40)), ""},
		"70 KiB":                 {addBody(1, `,"note":"`+strings.Repeat("x", 70<<10)+`"`), ""},
	}
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			a := h.Do("POST", "/wishlist", cookie, c.body, "Content-Type", "application/json")
			named := slices.ContainsFunc(a.Errors, func(e struct{ Field, Code, Detail string }) bool {
				return e.Field != "" && (c.field == "" || e.Field == c.field)
			})
			if a.StatusCode < 400 || a.StatusCode > 499 || !named {
				t.Errorf("got %d %s; want 4xx that names the field", a.StatusCode, a.Text)
			}
		})
	}
	for _, path := range []string{"ppt_1", "ppt_" + strings.Repeat("z", 26), tenantID(1), "%00", "..%2f", "ppt_%27"} {
		if a := h.Do("DELETE", "/wishlist/"+path, cookie, ""); a.StatusCode != 422 {
			t.Errorf("DELETE %s: got %d; want 422", path, a.StatusCode)
		}
	}
	if n := h.Count("wishlist_anonymous"); n != 0 {
		t.Errorf("got %d rows; want 0", n)
	}
}
