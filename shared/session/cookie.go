package session

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// CookieName is the only cookie of this service.
const CookieName = "gms_id"

// VerifiedID returns the session id of the request's cookie. VerifiedID returns "" without a
// cookie, with two cookies, and with a value that is malformed, not signed by a key of the ring,
// older than 365 days, or more than a minute in the future. VerifiedID reads no store, so the
// session may be gone. The cost is at most an HMAC per key of the ring. VerifiedID never fails.
func (st *Store) VerifiedID(req *http.Request) string {
	sent := req.CookiesNamed(CookieName)
	if len(sent) != 1 || !verifyID(st.ring, sent[0].Value, st.now()) {
		return ""
	}
	return strings.Clone(sent[0].Value) // the id must not pin the whole header in caches
}

// cookieAttributes are formatted once, because every personal response carries them.
var cookieAttributes = fmt.Sprintf("; Path=/; Max-Age=%d; HttpOnly; Secure; SameSite=Lax", int(TTL/time.Second))

// SetCookie sets the session cookie, or renews its 30 days, and replaces every other Set-Cookie
// header of the response. Call SetCookie before the response begins. Only personal responses may
// have a cookie. SetCookie does not check id and never fails.
func SetCookie(w http.ResponseWriter, id string) {
	w.Header()["Set-Cookie"] = []string{CookieName + "=" + id + cookieAttributes}
}

// ExpireCookie adds a Set-Cookie header that makes the client drop the session cookie. Call
// ExpireCookie before the response begins, and not after SetCookie. ExpireCookie never fails.
func ExpireCookie(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{
		Name: CookieName, Path: "/", MaxAge: -1, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode,
	})
}
