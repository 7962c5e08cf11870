package main

// Every function of the service. An import registers its entry points, and that is all it does.
import (
	_ "melmastoon.ghasi.io/bff-consumer/functions/search"
)
