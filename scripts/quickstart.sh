#!/usr/bin/env bash
# Makes .venv, installs irtjax and runs `irtjax demo`: bash scripts/quickstart.sh [demo options...]
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

ensure_venv ''
exec "$venv/bin/irtjax" demo "$@"
