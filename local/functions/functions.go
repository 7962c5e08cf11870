// Package functions links every function of this repository into a program. An import registers the
// entry points with the functions framework and with shared/web; it opens nothing and has no other
// effect. This is the only list of the function folders in Go source: TestImports_ListEveryFolder
// compares it with functions/.
package functions

import (
	_ "melmastoon.ghasi.io/bff-consumer/functions/consume"
	_ "melmastoon.ghasi.io/bff-consumer/functions/detail"
	_ "melmastoon.ghasi.io/bff-consumer/functions/handoff"
	_ "melmastoon.ghasi.io/bff-consumer/functions/invalidate"
	_ "melmastoon.ghasi.io/bff-consumer/functions/migrate"
	_ "melmastoon.ghasi.io/bff-consumer/functions/relay"
	_ "melmastoon.ghasi.io/bff-consumer/functions/search"
	_ "melmastoon.ghasi.io/bff-consumer/functions/session"
	_ "melmastoon.ghasi.io/bff-consumer/functions/sweep"
	_ "melmastoon.ghasi.io/bff-consumer/functions/telemetry"
	_ "melmastoon.ghasi.io/bff-consumer/functions/wishlist"
)
