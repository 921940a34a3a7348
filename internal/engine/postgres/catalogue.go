package postgres

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"howdah/internal/model/extension"
	"howdah/internal/model/param"
	"howdah/internal/system/owner"
)

// described lists the libraries whose parameters are in the catalogue, too.
var described = []string{"auto_explain", "pg_prewarm", "pg_stat_statements", "pgaudit"}

// catalogueSQL leaves out what the platform has the module define: param knows which of these users may
// set. It returns one line, as the output of a single-user server is hard to parse.
const catalogueSQL = `SELECT replace(encode(convert_to(jsonb_build_object(
 'parameters', (SELECT jsonb_agg(p ORDER BY p.name) FROM (SELECT name, vartype, coalesce(unit, '') AS unit, coalesce(min_val, '') AS min_val, coalesce(max_val, '') AS max_val, enumvals, context, coalesce(boot_val, '') AS boot_val, short_desc FROM pg_settings WHERE name NOT LIKE 'howdah.%' AND name NOT LIKE 'rds.%') p),
 'extensions', (SELECT coalesce(jsonb_agg(name ORDER BY name), '[]') FROM pg_available_extensions WHERE name = ANY(regexp_split_to_array((SELECT boot_val FROM pg_settings WHERE name = 'howdah.extensions'), '[\s",]+')))
)::text, 'UTF8'), 'base64'), E'\n', '') AS catalogue;

`

var (
	errCatalogue  = errors.New("its answer is not understood")
	catalogueForm = regexp.MustCompile(`catalogue = "([A-Za-z0-9+/=]+)"`)
)

// ReadCatalogue asks an installed PostgreSQL for all its parameters, in a cluster on which no
// server runs. modules is the directory of our own modules.
func ReadCatalogue(ctx context.Context, install Install, user *owner.User, dir, modules string) (param.Catalogue, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	load := slices.DeleteFunc(slices.Clone(described), func(name string) bool { return !install.Extension(name) })
	out, err := run(ctx, user, strings.NewReader(catalogueSQL), install.Program("postgres"),
		"--single", "-j", "-D", dir, "-c", "exit_on_error=on", "-c", "log_min_messages=error",
		"-c", "dynamic_library_path=$libdir:"+modules, "-c", "shared_preload_libraries="+strings.Join(append(load, "howdah"), ","), "rdsadmin")
	if err != nil {
		return param.Catalogue{}, fmt.Errorf("read parameters of PostgreSQL %s: %w", install.Full, err)
	}
	c := param.Catalogue{}
	match := catalogueForm.FindStringSubmatch(out)
	if match == nil {
		return c, fmt.Errorf("read parameters of PostgreSQL %s: %w: %s", install.Full, errCatalogue, tail(out))
	}
	text, err := base64.StdEncoding.DecodeString(match[1])
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return c, fmt.Errorf("read parameters of PostgreSQL %s: %w", install.Full, err)
	}
	c.Version = install.Full
	c.Libraries = slices.DeleteFunc(extension.Libraries(), func(name string) bool { return !install.Extension(name) })
	return c, nil
}

// ErrSetting says that PostgreSQL refuses a setting.
var ErrSetting = errors.New("PostgreSQL refuses it")

var fatalForm = regexp.MustCompile(`(?:FATAL|DETAIL|HINT): +(.*)`)

// CheckSetting has PostgreSQL itself check a value as it reads its arguments, without starting a
// server. It can only check parameters that PostgreSQL has without a library.
func CheckSetting(ctx context.Context, install Install, name, value string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "howdah-check-")
	if err != nil {
		return fmt.Errorf("check setting: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "postgresql.conf"), nil, 0o600); err != nil {
		return fmt.Errorf("check setting: %w", err)
	}
	out, err := run(ctx, nil, nil, install.Program("postgres"), "-C", "server_version", "-D", dir, "-c", name+"="+value)
	if err == nil {
		return nil
	}
	var said []string
	for _, match := range fatalForm.FindAllStringSubmatch(out, -1) {
		said = append(said, match[1])
	}
	if len(said) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", ErrSetting, strings.Join(said, " "))
}
