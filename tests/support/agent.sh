# The scriptable agent: it does what the instructions for its job say, and notes each side effect in a file that is
# only ever appended to. Instructions are the first of do/RUN/JOB.ATTEMPT, do/JOB.ATTEMPT, do/JOB that exists.
AGENT=${0%/*}
RUN=$STRIATUM_RUN JOB=$STRIATUM_JOB ATTEMPT=$STRIATUM_ATTEMPT

# One line, one write: a side effect that happened.
effect() { printf '%s\n' "$RUN $JOB $ATTEMPT $$ $*" >> "$AGENT/effects.log"; }
# Side effect that may be repeated: not counted.
note() { printf '%s\n' "$RUN $JOB $ATTEMPT $$ $*" >> "$AGENT/notes.log"; }
# Waits until a test lets it go on.
hold() { note "holds $1"; until [ -e "$AGENT/go-$1" ]; do sleep 0.02; done; }
# Never ends by itself.
hang() { note hangs; while :; do sleep 3600; done; }
ignore_term() { trap '' TERM HUP INT; }
# A process that leaves the agent's session and parent, and ignores what asks it to end.
daemon() { setsid sh -c 'trap "" TERM HUP INT; echo $$ >> "$0/daemons"; while :; do sleep 3600; done' "$AGENT" < /dev/null > /dev/null 2>&1 & }
# Bytes of output.
flood() { head -c "$1" /dev/zero | tr '\0' x; }
write() { name=$1; shift; mkdir -p "$(dirname "$name")"; printf '%s\n' "$*" > "$name"; }
publish() { striatum work publish "$@"; }
complete() { striatum work complete "$@"; }
verdict() { word=$1; shift; striatum work verdict "$word" "$@"; }
fail() { striatum work fail --reason "$1"; }
block() { striatum work block --awaiting "$1" --who-can a-person --action decide; }
ask() { striatum work block --needs-context --awaiting "$1" --who-can a-person --action answer; }
# An answer by file instead of by verb.
result() { printf '%s\n' "$1" > "$STRIATUM_RESULT"; }

# What the instructions for the job say.
work() {
  effect start
  for instructions in "$AGENT/do/$RUN/$JOB.$ATTEMPT" "$AGENT/do/$JOB.$ATTEMPT" "$AGENT/do/$JOB"; do
    if [ -e "$instructions" ]; then . "$instructions"; return; fi
  done
  if [ "$STRIATUM_ROLE" = reviewer ]; then verdict accept; else complete; fi
}

if [ -n "$JOB" ]; then work; exit; fi

# A resident: takes work itself, one piece after the other, until nothing can come.
field() { printf '%s' "$claimed" | sed -n "s/.*\"$1\":\"*\([^\",}]*\).*/\1/p"; }
note resident
while :; do
  claimed=$(striatum work claim --json) || exit 0
  case $claimed in
    *'"is_final":true'*) exit 0 ;;
    *'"status":"claimed"'*)
      JOB=$(field job) ATTEMPT=$(field attempt) STRIATUM_FENCE=$(field fence)
      export STRIATUM_FENCE
      # Half an answer, because a part of this script was killed, is none.
      [ -n "$JOB" ] && [ -n "$ATTEMPT" ] && [ -n "$STRIATUM_FENCE" ] || exit 1
      (cd "$(field cwd)" && work) || exit
      ;;
    *) sleep 0.02 ;;
  esac
done
