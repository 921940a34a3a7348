# link: makes the link that stands for pg_tblspc, and has it removed when the script ends that reads
# this. It goes round by another name of the data directory, since pgBackRest takes no link to what
# lies in that directory.
#
# Whoever needs the link holds the lock with others, and the last one removes the link. So two
# backups at once, to two repositories, do not take it from each other. A directory of that name is
# what pg_rewind made of the link of another member.
[ "$(readlink "$dir/data")" = "$data" ] || ln -sfn "$data" "$dir/data" || exit 1
link="$data/$tablespaces"
exec 9>"$dir/$linklock" || exit 1
flock -s 9 || exit 1
[ -L "$link" ] || rm -rf "$link" || exit 1
ln -sfn "$dir/data/pg_tblspc" "$link" || exit 1
trap 'flock -n -x 9 && rm -f "$link"' EXIT
