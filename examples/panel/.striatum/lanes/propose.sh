# The author. Proposes what it was given, and changes what the findings of the panel object to.
set -eu
name=$1
if grep -q '^- too long: ' "$STRIATUM_PROMPT"; then
    name=$(printf %s "$name" | cut -c 1-8)
fi
if grep -q '^- no vowel: ' "$STRIATUM_PROMPT"; then
    name=${name}o
fi
if grep -q '^- taken: ' "$STRIATUM_PROMPT"; then
    name=${name}ling
fi
printf '%s\n' "$name" > name.txt
striatum work complete --summary "$name"
