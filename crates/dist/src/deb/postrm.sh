#!/bin/sh
# The keystore in /var/lib/bulla and the settings in /etc/bulla stay, even when the package is
# purged: no copy of the keys may exist.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
