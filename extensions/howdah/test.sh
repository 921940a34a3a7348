#!/bin/bash
# Builds howdah and runs all of its tests, without touching the system: in a
# copy of the PostgreSQL that PG_CONFIG names (its programs find their files
# relative to themselves), as a user who is not root.
#
#   ./test.sh                        the pg_config in PATH
#   PG_CONFIG=/…/pg_config ./test.sh another release or build
#   ./test.sh REGRESS='setup roles' TAP_TESTS=   arguments go to make installcheck
#
# On failure, what the tests left is kept and its place is printed.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")" && pwd)
pg_config=$(command -v "${PG_CONFIG:-pg_config}")
user=${HOWDAH_TEST_USER:-postgres}
work=$(mktemp -d "${TMPDIR:-/tmp}/howdah-test.XXXXXX")
trap 'status=$?; [ $status -eq 0 ] && rm -rf "$work" || echo "kept: $work" >&2; exit $status' EXIT

# run as the unprivileged user, or as oneself if not root
unprivileged() {
	if [ "$(id -u)" -eq 0 ]; then
		setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups \
			env HOME="$work" TMPDIR="$work/tmp" "$@"
	else
		TMPDIR="$work/tmp" "$@"
	fi
}

copy=$work/copy
mkdir -p "$copy" "$work/build" "$work/tmp"
for option in --bindir --pkglibdir --sharedir --includedir-server; do
	dir=$("$pg_config" $option)
	mkdir -p "$copy$dir"
	cp -a "$dir/." "$copy$dir"
done
pg_config=$copy$("$pg_config" --bindir)/pg_config
[ "$("$pg_config" --sharedir)" != "$("${PG_CONFIG:-pg_config}" --sharedir)" ] ||
	{ echo "the copy of PostgreSQL in $copy still uses the original's files" >&2; exit 1; }

cp -a "$source_dir"/. "$work/build"
cp "$source_dir"/test/howdah_* "$("$pg_config" --sharedir)/extension"
cd "$work/build"
make -s clean PG_CONFIG="$pg_config" with_llvm=no
make -s PG_CONFIG="$pg_config" with_llvm=no
make -s install PG_CONFIG="$pg_config" with_llvm=no
# The suite of escapes has the other module loaded, too. It is built with the
# original's files, and copied.
cp -a "$source_dir/../ccm" "$work/ccm"
make -s -C "$work/ccm" clean all PG_CONFIG="${PG_CONFIG:-pg_config}" with_llvm=no
cp "$work/ccm/ccm.so" "$("$pg_config" --pkglibdir)"
cp "$work"/ccm/ccm{.control,--1.0.sql} "$("$pg_config" --sharedir)/extension"
chmod 755 "$work"
[ "$(id -u)" -ne 0 ] || chown -R "$user" "$work"

unprivileged make installcheck PG_CONFIG="$pg_config" with_llvm=no "$@"
