package backup

import "testing"

func TestRepositoriesAreFoundByName(t *testing.T) {
	p := Place{Repositories: []Access{{Name: "main"}, {Name: "copies"}}}
	if p.Index("main") != 0 || p.Index("copies") != 1 {
		t.Errorf("main %d, copies %d", p.Index("main"), p.Index("copies"))
	}
	defer func() {
		if recover() == nil {
			t.Error("a repository that the place does not have was found")
		}
	}()
	p.Index("other")
}

func TestWorkersHaveADefault(t *testing.T) {
	if (Place{}).Workers() != DefaultProcesses || (Place{Processes: 5}).Workers() != 5 {
		t.Error("wrong number of processes")
	}
}
