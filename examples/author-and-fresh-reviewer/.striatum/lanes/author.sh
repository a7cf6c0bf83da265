# The author. Sorts as computers do, by code: capitals first. When a review objects to the order, it sorts as people do.
set -eu
LC_ALL=C
export LC_ALL
terms=$(dirname "$STRIATUM_DIR")/terms.txt

if grep -q '^- order: ' "$STRIATUM_PROMPT"; then fold=-f; else fold=; fi
sort $fold "$terms" | sed 's/^\([^:]*\): /- **\1**: /' > glossary.md
striatum work complete --summary "$(awk 'END { print NR }' glossary.md) terms"
