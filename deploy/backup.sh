#!/usr/bin/env bash
# Take a backup of the arena's database while it runs, and keep the newest ones.
#
#     backup.sh DIRECTORY [HOW-MANY-TO-KEEP, 14 unless told]
#
# The database is the one that ARENA_DATABASE names: in the environment, because a password on a
# command line is there for every user of the machine to read.
set -euo pipefail
umask 077 # a backup holds what people wrote

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: $0 DIRECTORY [HOW-MANY-TO-KEEP]" >&2
    exit 2
fi
directory=$1
keep=${2:-14}
if ! [[ $keep =~ ^[1-9][0-9]*$ ]]; then
    echo "$0: keep at least one backup, got '$keep'" >&2
    exit 2
fi
if [ -z "${ARENA_DATABASE:-}" ]; then
    echo "$0: set ARENA_DATABASE to the database's URL" >&2
    exit 2
fi

mkdir -p -- "$directory"
name=arena-$(date -u +%Y%m%dT%H%M%S%NZ).backup
partial=$directory/.$name.partial
trap 'rm -f -- "$partial"' EXIT

# Only a whole backup gets its name, and only after it are older ones removed.
told=$(arena backup --to "$partial")
mv -- "$partial" "$directory/$name"
echo "$directory/$name${told#"$partial"}"

shopt -s nullglob
backups=("$directory"/arena-*.backup) # sorted by name, and so by time
for ((i = 0; i < ${#backups[@]} - keep; i++)); do
    rm -- "${backups[i]}"
done
