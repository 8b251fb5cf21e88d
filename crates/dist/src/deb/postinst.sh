#!/bin/sh
# The unit is installed, and not enabled: it needs settings and a passphrase first. An upgrade
# restarts a service that runs.
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart bulla.service
fi
