# A reviewer. Reads the change as a patch: whatever it changes below bin/ must be told in CHANGES.md, and nothing that
# stood there may go.
set -eu
LC_ALL=C
export LC_ALL
patch=$STRIATUM_SCRATCH/inputs/fix/change.patch
cat "$patch"

verdict=accept
set --
for file in $(sed -n 's|^+++ b/\(bin/.*\)|\1|p' "$patch"); do
    told=$(awk '/^diff / { on = ($0 ~ /CHANGES.md$/) } on && /^[+]- /' "$patch")
    if ! printf '%s\n' "$told" | grep -q -F -e "- $file:"; then
        verdict=needs_revision
        set -- "$@" --finding "not told in CHANGES.md: $file"
    fi
done
lost=$(awk '/^diff / { on = ($0 ~ /CHANGES.md$/) } on && /^-- /' "$patch")
if [ -n "$lost" ]; then
    verdict=needs_revision
    set -- "$@" --finding "gone from CHANGES.md: $lost"
fi

striatum work verdict "$verdict" "$@" --summary "the change and CHANGES.md were held together"
