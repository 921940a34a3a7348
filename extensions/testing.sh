# What the test.sh of each extension begins with, which sources this file: a copy of a PostgreSQL
# (its programs find their files relative to themselves), and a user who is not root.
#
# Before: NAME is the extension's, USER_OF_TESTS whom the tests run as if we are root.
# After: original and pg_config are those of the PostgreSQL and of its copy, and work is a
# directory that is removed if the tests pass. On failure it is kept, and its place is printed.

original=$(command -v "${PG_CONFIG:-pg_config}")
work=$(mktemp -d "${TMPDIR:-/tmp}/$NAME-test.XXXXXX")
trap 'status=$?; [ $status -eq 0 ] && rm -rf "$work" || echo "kept: $work" >&2; exit $status' EXIT

# unprivileged COMMAND…: runs it as the unprivileged user, or as oneself if not root
unprivileged() {
	if [ "$(id -u)" -eq 0 ]; then
		setpriv --reuid="$USER_OF_TESTS" --regid="$(id -g "$USER_OF_TESTS")" --clear-groups \
			env HOME="$work" TMPDIR="$work/tmp" "$@"
	else
		TMPDIR="$work/tmp" "$@"
	fi
}

# build DIR: builds what is in a directory, and installs it into the copy.
build() {
	local target
	for target in clean all install; do
		make -s -C "$1" "$target" PG_CONFIG="$pg_config" with_llvm=no
	done
}

# installcheck ARGUMENT…: runs the tests of what is in the directory build, as the unprivileged user.
installcheck() {
	chmod 755 "$work"
	[ "$(id -u)" -ne 0 ] || chown -R "$USER_OF_TESTS" "$work"
	unprivileged make -C "$work/build" installcheck PG_CONFIG="$pg_config" with_llvm=no "$@"
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
includedir=$("$original" --includedir)
mkdir -p "$copy$libdir" "$copy$includedir"
cp -a "$libdir"/libpq.* "$copy$libdir/" 2>/dev/null || true
cp -a "$includedir"/{libpq-fe.h,postgres_ext.h,pg_config_ext.h} "$copy$includedir/" 2>/dev/null || true
