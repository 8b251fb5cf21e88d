#!/bin/sh
# A service without its program must not go on.
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now bulla.service
fi
