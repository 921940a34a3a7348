#!/bin/bash
# Builds ccm and runs all of its tests, without touching the system: in a copy
# of a PostgreSQL (its programs find their files relative to themselves), as a
# user who is not root.
#
#   ./test.sh                        the pg_config in PATH
#   ./test.sh 17                     another major version
#   PG_CONFIG=/…/pg_config ./test.sh another build
#   ./test.sh 15 TAP_TESTS= REGRESS=pull   arguments go to make installcheck
#
# CCM_FUZZ_SECONDS is how long the reading of messages is tried with rubbish.
# On failure, what the tests left is kept and its place is printed.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")" && pwd)

# pg_config_of MAJOR looks where scripts/install puts what it builds, too
pg_config_of() {
	local dir
	for dir in "/usr/lib/postgresql/$1" "$HOME/.local/share/howdah/postgresql-$1" "/opt/howdah/postgresql-$1"; do
		[ ! -x "$dir/bin/pg_config" ] || { echo "$dir/bin/pg_config"; return; }
	done
	echo "PostgreSQL $1 is not installed" >&2
	return 1
}

if [[ ${1:-} =~ ^[0-9]+$ ]]; then
	PG_CONFIG=$(pg_config_of "$1")
	shift
fi
original=$(command -v "${PG_CONFIG:-pg_config}")
user=${CCM_TEST_USER:-postgres}
work=$(mktemp -d "${TMPDIR:-/tmp}/ccm-test.XXXXXX")
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
	dir=$("$original" $option)
	mkdir -p "$copy$dir"
	cp -a "$dir/." "$copy$dir"
done
pg_config=$copy$("$original" --bindir)/pg_config
[ "$("$pg_config" --sharedir)" != "$("$original" --sharedir)" ] ||
	{ echo "the copy of PostgreSQL in $copy still uses the original's files" >&2; exit 1; }
# A build of its own has its libpq beside it, by a path that it was built with.
libdir=$("$original" --libdir)
cp -a "$libdir"/libpq.* "$copy$libdir/" 2>/dev/null || { mkdir -p "$copy$libdir"; cp -a "$libdir"/libpq.* "$copy$libdir/"; }
includedir=$("$original" --includedir)
mkdir -p "$copy$includedir"
cp -a "$includedir"/{libpq-fe.h,postgres_ext.h,pg_config_ext.h} "$copy$includedir/" 2>/dev/null || true

cp -a "$source_dir"/. "$work/build"
cd "$work/build"

# The parts that read what a network brings, alone
pure="src/filter.c src/wire.c"
warnings="-Wall -Wextra -Werror -Wno-sign-compare -g -Isrc"
gcc -O2 $warnings -o test/properties test/properties.c $pure -lm
gcc -O1 $warnings -fsanitize=address,undefined -fno-sanitize-recover=all -o test/fuzz test/fuzz.c $pure
chmod 755 "$work"
unprivileged test/properties
unprivileged test/fuzz "${CCM_FUZZ_SECONDS:-5}"

make -s clean PG_CONFIG="$pg_config" with_llvm=no
make -s PG_CONFIG="$pg_config" with_llvm=no
make -s install PG_CONFIG="$pg_config" with_llvm=no
[ "$(id -u)" -ne 0 ] || chown -R "$user" "$work"

unprivileged make installcheck PG_CONFIG="$pg_config" with_llvm=no "$@"
