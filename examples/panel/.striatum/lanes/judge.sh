# A reviewer: one question, by the name of its job.
set -eu
name=$(cat "$STRIATUM_SCRATCH/inputs/propose/name")

objection=
case $1 in
    short) [ "${#name}" -le 12 ] || objection="too long: $name has ${#name} letters" ;;
    spoken) case $name in *[aeiou]*) ;; *) objection="no vowel: $name can't be said" ;; esac ;;
    free) if found=$(command -v "$name"); then objection="taken: $name is $found"; fi ;;
esac

if [ -z "$objection" ]; then
    striatum work verdict accept --summary "$name will do"
else
    striatum work verdict needs_revision --finding "$objection"
fi
