package parts

import (
	"fmt"

	"howdah/internal/identity/home"
	"howdah/internal/system/imagefs"
)

// CheckMounted returns an error if the file system of a home's databases is not mounted. A host
// that found an empty directory would take its members for gone.
func CheckMounted(h *home.Home) error {
	if h.Storage == "" {
		return nil
	}
	own, _, err := imagefs.Mounted(h.Storage, h.DataRoot)
	if err == nil && !own {
		err = fmt.Errorf("the databases of this home are in %s, which is not mounted at %s: howdah up mounts it", h.Storage, h.DataRoot)
	}
	return err
}
