# What .ci/run and .ci/nightly share: programs that are installed where they are missing, and steps that say how long they took.
# Read with `source` at the root of the checkout.
set -euo pipefail

readonly passed=.ci/passed # folders and their git objects when the whole of what tests them last passed
keep_going=0 # whether the steps after one that fails are run, too
times=()
failed=0

# Chromium is for the tests of the HTML report, iproute2 for those of several hosts, openssl for a certificate.
install_missing() {
    local missing=()
    command -v chromium >/dev/null || missing+=(chromium)
    command -v ip >/dev/null || missing+=(iproute2)
    command -v openssl >/dev/null || missing+=(openssl)
    ((${#missing[@]})) || return 0
    printf '\n== installing %s\n' "${missing[*]}"
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Runs make with some targets, and says how it ended and after how long.
step() {
    local start=$SECONDS how=passed
    printf '\n== make %s\n' "$*"
    make "$@" || how=FAILED
    times+=("$(printf '%5d s  %s  make %s' "$((SECONDS - start))" "$how" "$*")")
    printf '== make %s: %s in %d s\n' "$*" "$how" "$((SECONDS - start))"
    if [ "$how" = FAILED ]; then
        failed=1
        ((keep_going)) || summary
    fi
}

# Whether one of some folders is not as it was when `make nightly` passed.
changed() {
    local folder
    for folder; do
        grep -qsxF "$folder $(git rev-parse "HEAD:$folder")" "$passed" || return 0
    done
    return 1
}

# Ends the run where a step failed.
summary() {
    printf '\n== %s after %d s\n' "$( ((failed)) && echo 'a step FAILED' || echo 'all steps passed')" "$SECONDS"
    printf '%s\n' "${times[@]}"
    ((failed == 0)) || exit 1
}
