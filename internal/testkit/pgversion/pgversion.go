// Package pgversion says in one place which version of PostgreSQL tests and benchmarks use. A
// program that imports it, and all that it starts, offers only this version, whatever else is
// installed.
package pgversion

import (
	"os"
	"strconv"
)

// usual is the version if HOWDAH_TEST_POSTGRES names no other.
const usual = 15

// Major returns the version to use.
func Major() int {
	major, err := strconv.Atoi(os.Getenv("HOWDAH_TEST_POSTGRES"))
	if err != nil {
		return usual
	}
	return major
}

// offerVariable is postgres.OfferVariable. The tests of that package need this one, so it cannot be
// imported.
const offerVariable = "HOWDAH_POSTGRES"

// Offer returns the choice in the form of os.Environ, for programs with an environment of their
// own.
func Offer() string { return offerVariable + "=" + strconv.Itoa(Major()) }

// It has to be set before anybody looks which versions there are.
func init() {
	if err := os.Setenv(offerVariable, strconv.Itoa(Major())); err != nil {
		panic(err)
	}
}
