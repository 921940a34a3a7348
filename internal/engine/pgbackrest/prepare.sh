# prepare CONFIG: prepares a repository for the database, and does nothing where that is done.
#
# pgBackRest makes archive.info, and then backup.info. If it is killed in between, it refuses to go on,
# for ever, as backup.info may as well have been lost. Where not one file of a backup is there, nothing
# was lost. Then backup.info is made in a directory of ours, and put into its place. Nothing is
# removed from the repository: WAL may be there already.
#
# Another host may be in the middle of that: a primary that lost its role a moment ago. So it has to
# look like this for a minute.
set -u
umask 077
PATH=/usr/bin:/bin
LC_ALL=C
conf=$1
since=$conf.half

make() { "$program" --config="$conf" --stanza="$database" "$@" stanza-create; }

said=$(make 2>&1)
code=$?
[ -z "$said" ] || printf '%s\n' "$said"
case $code:$said in
55:*'archive.info exists but backup.info is missing'*) ;;
0:*)
	[ ! -e "$since" ] || rm -f "$since"
	exit 0
	;;
*) exit "$code" ;;
esac

[ -e "$since" ] || : >"$since"
[ -n "$(find "$since" -mmin +0.99)" ] || exit "$code"
there=$("$program" --config="$conf" --stanza="$database" repo-ls "backup/$database") || exit "$code"
[ -z "$there" ] || exit "$code"
exec 9>"$dir/preparation.lock" && flock -n 9 || exit "$code"
own=$dir/preparation
rm -rf "$own" && make --repo1-type=posix --repo1-path="$own" || exit
"$program" --config="$conf" --stanza="$database" --raw repo-put "backup/$database/backup.info" <"$own/backup/$database/backup.info" || exit
rm -rf "$own" "$since"
# It says whether the two files belong together, and adds the copy.
make
