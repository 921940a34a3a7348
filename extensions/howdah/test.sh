#!/bin/bash
# Builds howdah and runs all of its tests, without touching the system: in a
# copy of the PostgreSQL that PG_CONFIG names, as a user who is not root.
#
#   ./test.sh                        the pg_config in PATH
#   PG_CONFIG=/…/pg_config ./test.sh another release or build
#   ./test.sh REGRESS='setup roles' TAP_TESTS=   arguments go to make installcheck
#
# On failure, what the tests left is kept and its place is printed.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")" && pwd)
NAME=howdah
USER_OF_TESTS=${HOWDAH_TEST_USER:-postgres}
. "$source_dir/../testing.sh"

cp -a "$source_dir"/. "$work/build"
cp "$source_dir"/test/howdah_* "$("$pg_config" --sharedir)/extension"
build "$work/build"
# The suite of escapes has the other module loaded, too.
cp -a "$source_dir/../ccm" "$work/ccm"
build "$work/ccm"
installcheck "$@"
