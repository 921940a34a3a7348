// Package pgversion says which version of PostgreSQL tests and benchmarks use, in one
// place. Whoever imports it, and all that it starts, offers this version alone, whatever
// else is installed.
package pgversion

import (
	"os"
	"strconv"
)

// usual is the version that is used unless HOWDAH_TEST_POSTGRES names another one.
const usual = 15

// Major is the version to use.
func Major() int {
	major, err := strconv.Atoi(os.Getenv("HOWDAH_TEST_POSTGRES"))
	if err != nil {
		return usual
	}
	return major
}

// offerVariable is postgres.OfferVariable, whose package has tests that need this one.
const offerVariable = "HOWDAH_POSTGRES"

// Offer is the choice in the form of os.Environ, for programs with an environment of
// their own.
func Offer() string { return offerVariable + "=" + strconv.Itoa(Major()) }

// It has to be set before anybody looks which versions there are.
func init() {
	if err := os.Setenv(offerVariable, strconv.Itoa(Major())); err != nil {
		panic(err)
	}
}
