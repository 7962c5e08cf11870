package session

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// CookieName is the one cookie of this service.
const CookieName = "gms_id"

// VerifiedID returns the genuine session id of the request; a malformed, foreign or doubled cookie is none.
func (r *Store) VerifiedID(req *http.Request) string {
	sent := req.CookiesNamed(CookieName)
	if len(sent) != 1 || !verifyID(r.ring, sent[0].Value, r.now()) {
		return ""
	}
	return strings.Clone(sent[0].Value) // ids are kept, and must not keep all cookies of the request
}

// cookieAttributes of the cookie, written out once: every personal answer carries them.
var cookieAttributes = fmt.Sprintf("; Path=/; Max-Age=%d; HttpOnly; Secure; SameSite=Lax", int(TTL/time.Second))

// SetCookie names the session to the client, or refreshes its 30 days. Only personal answers carry it.
func SetCookie(w http.ResponseWriter, id string) {
	w.Header()["Set-Cookie"] = []string{CookieName + "=" + id + cookieAttributes}
}

// ExpireCookie takes the session's name from the client.
func ExpireCookie(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{
		Name: CookieName, Path: "/", MaxAge: -1, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode,
	})
}
