package seats

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit/pgtest"
)

func TestWhetherSessionsFit(t *testing.T) {
	t.Parallel()
	s := Server{Most: 100, Reserved: 3, InUse: 7}
	limited, narrow, pooled := s, s, s
	limited.RoleRoom, narrow.DatabaseRoom = new(4), new(2)
	pooled.RoleRoom, pooled.Pooled = new(4), true
	for _, c := range []struct {
		s        Server
		sessions int
		says     string // "": they fit
	}{
		{s, 90, ""}, {s, 120, "120 are asked for, and there is room for 90 (max_connections is 100, 3 are reserved, 7 in use)"},
		{limited, 4, ""}, {limited, 5, "limit of the role leaves 4"}, {narrow, 3, "limit of the database leaves 2"},
		{pooled, 1024, ""}, {Server{Most: 5, InUse: 9}, 1, "there is room for 0"},
	} {
		if says := c.s.Lacks(c.sessions); !strings.Contains(says, c.says) || (says == "") != (c.says == "") {
			t.Errorf("%d in %+v: %q", c.sessions, c.s, says)
		}
	}
	after := limited.Without()
	if after.InUse != 6 || *after.RoleRoom != 5 || *limited.RoleRoom != 4 || after.DatabaseRoom != nil {
		t.Errorf("%+v, of %+v", after, limited)
	}
}

// A role that may not see others' sessions counts them all the same.
func TestWhatAServerSaysOfItself(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{Settings: "max_connections = 30\nsuperuser_reserved_connections = 4\n"})
	s.Exec("CREATE ROLE narrow LOGIN CONNECTION LIMIT 6")
	s.Exec("ALTER DATABASE " + s.Database + " CONNECTION LIMIT 9")
	for range 3 {
		other, err := pgx.ConnectConfig(t.Context(), s.Config())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close(t.Context()) //nolint:revive // all last until the test ends
	}
	config := s.Config()
	config.User = "narrow"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	got, err := Ask(t.Context(), conn)
	if err != nil || got.Key == "" || got.Standby || got.ReadOnly || got.Pooled || got.Most != 30 || got.Reserved != 4 || got.InUse < 4 ||
		got.RoleRoom == nil || *got.RoleRoom != 5 || got.DatabaseRoom == nil || *got.DatabaseRoom > 5 {
		t.Errorf("%+v, %v", got, err)
	}
}
