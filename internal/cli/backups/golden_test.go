package backups

import (
	"testing"

	"howdah/internal/cli/clitest"
)

func TestGolden(t *testing.T) { clitest.Golden(t, Commands) }
