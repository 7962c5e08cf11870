// Package web owns the web page of the local system: the guest's view on the public API, the view
// of the system's inside, and the API reference. It serves static files with their headers; all
// logic of the page runs in the browser. It is never deployed.
package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

//go:embed static
var embedded embed.FS

// documents maps URL paths to HTML files. Other files have the URL path of their name.
var documents = map[string]string{"/": "index.html", "/book": "book.html", "/docs": "docs.html"}

// apiDescriptionPath is the URL path of the OpenAPI document that the API reference renders.
const apiDescriptionPath = "/docs/consumer.openapi.yaml"

// contentSecurityPolicy forbids requests to other origins and inline scripts, so even a bug in the
// page cannot leak a guest's data.
const contentSecurityPolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// docsContentSecurityPolicy also allows inline styles, which the renderer of the API reference
// uses.
const docsContentSecurityPolicy = contentSecurityPolicy + "; style-src 'self' 'unsafe-inline'"

// Page serves the files of the page. It is safe for concurrent use.
type Page struct {
	files fs.FS
	api   string // path of the OpenAPI document
	next  http.Handler
}

// New returns a Page that passes requests for other paths to next. folder is a directory with the
// files of the page, for work on them; "" uses the files in the binary. api is the path of the
// OpenAPI document. Page reads a file at each request.
func New(next http.Handler, folder, api string) *Page {
	files, _ := fs.Sub(embedded, "static") // cannot fail: the folder is compiled in
	if folder != "" {
		files = os.DirFS(folder)
	}
	return &Page{files, api, next}
}

// ServeHTTP serves a file of the page or calls the next handler. It responds 405 to methods other
// than GET and HEAD on a file.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, document := documents[r.URL.Path]
	if !document {
		name = strings.TrimPrefix(r.URL.Path, "/")
	}
	body, found := p.read(r.URL.Path, name)
	switch {
	case !found || !document && strings.HasSuffix(name, ".html"): // a document has the path in documents only
		p.next.ServeHTTP(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		gateway.WriteProblem(w, r, problem.New(problem.MethodNotAllowed, "See Allow for the methods of this address.", nil))
	default:
		serveFile(w, r, name, body)
	}
}

// read returns the content of a file. found is false for a missing file.
func (p *Page) read(url, name string) (body []byte, found bool) {
	var err error
	if url == apiDescriptionPath {
		body, err = os.ReadFile(p.api)
	} else if fs.ValidPath(name) {
		body, err = fs.ReadFile(p.files, name)
	} else {
		return nil, false
	}
	return body, err == nil
}

// mediaTypes are missing in the tables of some operating systems.
var mediaTypes = map[string]string{".woff2": "font/woff2", ".js": "text/javascript; charset=utf-8", ".yaml": "application/yaml", ".md": "text/markdown; charset=utf-8"}

func serveFile(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	media := cmp.Or(mediaTypes[path.Ext(name)], mime.TypeByExtension(path.Ext(name)), "text/plain; charset=utf-8")
	sum := sha256.Sum256(body)
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	if name == "docs.html" {
		h.Set("Content-Security-Policy", docsContentSecurityPolicy)
	}
	h.Set("Referrer-Policy", "no-referrer") // a URL may contain a handoff token
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache") // the next request may reach another build
	h.Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}
