#!/bin/sh
# Drives the run, and in the middle of the second step kills the driver and the step's helper with SIGKILL.
set -eu
mkfifo half go

striatum run drive > drive.log 2>&1 &
driver=$!
read -r session < half
helper=$(striatum supervise status --session-id "$session" --json | sed -n 's/.*"pid":\([0-9]*\).*/\1/p')
kill -9 "$driver" "$helper"
wait "$driver" 2> /dev/null || echo "the driver is dead"
echo "the helper of $session is dead"

# The agent lives. It may go on now, and nobody is there to see it.
echo go > go
