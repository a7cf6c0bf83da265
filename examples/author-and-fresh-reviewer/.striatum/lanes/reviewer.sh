# The reviewer. It has the glossary and the terms, and knows nothing of how the one came from the other.
set -eu
LC_ALL=C
export LC_ALL
terms=$(dirname "$STRIATUM_DIR")/terms.txt
sed -n 's/^- \*\*\(.*\)\*\*: .*/\1/p' "$STRIATUM_SCRATCH/inputs/draft/glossary" > listed.txt

verdict=accept
set --
while IFS=: read -r term _; do
    if [ "$(grep -c -x -F -e "$term" listed.txt)" -ne 1 ]; then
        verdict=needs_revision
        set -- "$@" --finding "count: $term is not there exactly once"
    fi
done < "$terms"

before=
while read -r term; do
    first=$(printf '%s\n%s\n' "$before" "$term" | sort -f | sed 1q)
    if [ "$first" != "$before" ]; then
        verdict=needs_revision
        set -- "$@" --finding "order: $term stands after $before"
    fi
    before=$term
done < listed.txt

striatum work verdict "$verdict" "$@" --summary "looked at $(awk 'END { print NR }' listed.txt) terms"
