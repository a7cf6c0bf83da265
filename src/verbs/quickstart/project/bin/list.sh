#!/bin/sh
# Prints every note, oldest first.
set -eu
. "$(dirname "$0")/../lib/dates.sh"
for file in "$(folder)"/*.txt; do
    test -f "$file" || continue
    day=$(basename "$file" .txt)
    while read -r line; do
        printf '%s %s\n' "$day" "$line"
    done < "$file"
done
