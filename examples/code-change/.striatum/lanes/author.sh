# Adds a line for a language. The first try forgets the name, which the tests find; the second puts the line at the
# end of the list, which the review finds; the third puts it in its place.
set -eu
language=$1 greeting=$2
name=', %s'
grep -q 'does not say the name' "$STRIATUM_PROMPT" || grep -q 'not in order' "$STRIATUM_PROMPT" || name=''
line=$(printf "    %s) printf '%s%s!\\\\n' \"\$2\" ;;" "$language" "$greeting" "$name")

{
    sed '/^    [a-z][a-z])/,$d' greet.sh
    if grep -q 'not in order' "$STRIATUM_PROMPT"; then order=sort; else order=cat; fi
    { sed -n '/^    [a-z][a-z])/p' greet.sh | grep -v "^    $language)"; printf '%s\n' "$line"; } | $order
    sed -n '/^    \*)/,$p' greet.sh
} > "$STRIATUM_SCRATCH/tmp/greet.sh"
cat "$STRIATUM_SCRATCH/tmp/greet.sh" > greet.sh
git diff
striatum work complete --summary "a line for $language"
