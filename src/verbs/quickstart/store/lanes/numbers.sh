# A reviewer. Counts again: each file's lines, a last line without a newline included, and the sums.
set -eu
LC_ALL=C
export LC_ALL
repository=$(dirname "$STRIATUM_DIR")
map=$STRIATUM_SCRATCH/inputs/draft/map

sed -n 's/^| \([^ ]*\) | \([0-9]*\) | .*/\1 \2/p' "$map" > claimed.txt

verdict=accept
set --
while read -r file claimed; do
    counted=$(awk 'END { print NR }' "$repository/$file")
    if [ "$counted" -ne "$claimed" ]; then
        verdict=needs_revision
        set -- "$@" --finding "wrong length of: $file: it has $counted lines, the map says $claimed"
    fi
done < claimed.txt

sums=$(awk '{ lines += $2 } END { printf "%d files, %d lines.", NR, lines }' claimed.txt)
if [ "$(tail -n 1 "$map")" != "$sums" ]; then
    verdict=needs_revision
    set -- "$@" --finding "wrong sums: the rows give $sums"
fi

{
    printf 'Numbers: %d lengths counted again.\n' "$(awk 'END { print NR }' claimed.txt)"
    for word in "$@"; do
        [ "$word" = --finding ] || printf -- '- %s\n' "$word"
    done
} > report.md

cat report.md
striatum work verdict "$verdict" "$@" --summary "$(sed 1q report.md)"
