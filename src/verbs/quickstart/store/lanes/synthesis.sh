# The editor. Joins the accepted map with the reports of both reviews.
set -eu
inputs=$STRIATUM_SCRATCH/inputs

{
    cat "$inputs/draft/map"
    printf '\n## How it was checked\n\n'
    cat "$inputs/coverage/report" "$inputs/numbers/report" | sed -n '/^- /!p'
    if cat "$inputs/coverage/report" "$inputs/numbers/report" | grep -q '^- '; then
        printf '\n## What remains to be said\n\n'
        cat "$inputs/coverage/report" "$inputs/numbers/report" | grep '^- '
    fi
} > MAP.md

cat MAP.md
striatum work complete --summary 'the map and what was checked are one document'
