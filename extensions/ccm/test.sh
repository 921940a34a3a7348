#!/bin/bash
# Builds ccm and runs all of its tests, without touching the system: in a copy
# of a PostgreSQL, as a user who is not root.
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
NAME=ccm
USER_OF_TESTS=${CCM_TEST_USER:-postgres}
. "$source_dir/../testing.sh"

cp -a "$source_dir"/. "$work/build"
cd "$work/build"

# The parts that need no server, alone: those that read what a network brings, and the pace
pure="src/filter.c src/wire.c src/pace.c"
warnings="-Wall -Wextra -Werror -Wno-sign-compare -g -Isrc"
gcc -O2 $warnings -o test/properties test/properties.c $pure -lm
gcc -O1 $warnings -fsanitize=address,undefined -fno-sanitize-recover=all -o test/fuzz test/fuzz.c $pure
chmod 755 "$work"
unprivileged test/properties
unprivileged test/fuzz "${CCM_FUZZ_SECONDS:-5}"

build .
installcheck "$@"
