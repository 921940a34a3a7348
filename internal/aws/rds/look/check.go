package look

import (
	"maps"
	"slices"

	"howdah/api"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
)

// DefaultPort is that of a database for which none is asked.
const DefaultPort = 5432

// License is the one licence model that there is.
const License = "postgresql-license"

// RefuseAsked refuses the parameters that were given of those that would silently
// have no effect.
func RefuseAsked(asked map[string]bool) error {
	return Refuse(asked, "The parameter %s is not available for this engine.")
}

// Refuse refuses the first, by name, of the things that were asked for; format
// names it.
func Refuse(asked map[string]bool, format string) error {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if asked[name] {
			return wire.NewError(api.ErrInvalidParameterCombination, format, name)
		}
	}
	return nil
}

// First is the first error, or nil.
func First(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// MonitoringIntervals are those of RDS, in seconds.
var MonitoringIntervals = []int{0, 1, 5, 10, 15, 30, 60}

// OrBlank is an error of something that is not there, unless it has no name.
func OrBlank(name, parameter string, missing error) error {
	if name == "" {
		return front.Blank(parameter)
	}
	return missing
}
