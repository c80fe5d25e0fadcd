# Setup shared by tests/run.sh and examples/run.sh, which source it with `.` from the project's root.
# Installs missing packages with apt, including those of $more_packages, and those of $wanted_packages if possible.
# Sets CUDA_HOME and PATH.

CUDA_HOME=$(sh tests/cuda_home.sh) || exit 1
PATH=$CUDA_HOME/bin:$PATH
export CUDA_HOME PATH
has_nvcc() { [ -x "$CUDA_HOME/bin/nvcc" ]; }
has_nvcc || echo "The CUDA Toolkit in $CUDA_HOME has no nvcc: only the host part is built; install all of it for the rest."

packages="g++ meson ninja-build pkg-config cmake python3 doctest-dev libtbb-dev libopenblas-dev zlib1g-dev
  libopenmpi-dev openmpi-bin nlohmann-json3-dev libxxhash-dev iproute2 ccache ${more_packages-}"

missing_of() {
  for package in "$@"; do
    case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
      installed) ;;
      *) printf ' %s' "$package" ;;
    esac
  done
}
if command -v dpkg-query >/dev/null; then
  # shellcheck disable=SC2086  # lists
  missing=$(missing_of $packages) wanted=$(missing_of ${wanted_packages-})
else
  echo "This system has no dpkg: these packages must be there already:"; echo "  $packages"
  missing='' wanted=''
fi
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
if [ -n "$as_root" ] && ! command -v sudo >/dev/null; then
  [ -z "$missing" ] || { echo "Missing packages:$missing. Run this as root, install sudo, or have them installed." >&2; exit 1; }
  wanted=
fi
if [ -n "$missing$wanted" ]; then
  get() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 "$@"; }
  install() { get install -y --no-install-recommends "$@" >/dev/null; }
  echo "Installing by apt-get:$missing$wanted"
  get update || echo 'apt-get update failed; trying the old lists' >&2
  # shellcheck disable=SC2086  # lists
  install $missing $wanted || { [ -n "$wanted" ] && echo "Continuing without$wanted" >&2 && install $missing; } || exit 1
fi

# Succeeds if there is a GPU that CUDA can use.
has_gpu() { __nvcc_device_query >/dev/null 2>&1; }
