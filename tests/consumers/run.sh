#!/bin/sh
# usage: run.sh WAY project-root build-folder compiler...
# Builds and runs a consumer in one of the ways to use the library. Some need what is not always there: conan needs
# Conan 2 in PATH or from PyPI, cpm the environment variable DESCENT_CPM, which names a CPM.cmake, vcpkg the variable
# VCPKG_ROOT, which names a folder with the program vcpkg and its ports. Without it, the exit status is 77.
set -e
way=$1 root=$2 build=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here"/. "$work"
cd "$work"

install() {  # into $work/prefix, whatever prefix the project was configured with
  meson install -C "$build" --no-rebuild --quiet --destdir "$work/destdir"
  mv "$(dirname "$(dirname "$(find "$work/destdir" -path '*/include/descent')")")" "$work/prefix"
}

clone() {  # of the working tree, at $url and $commit
  command -v git > /dev/null || { echo 'skipped: there is no git'; exit 77; }
  mkdir -p clone/tests clone/docs
  cp -r "$root/include" "$root/meson.build" clone
  cp -r "$root/docs/install" clone/docs
  cp "$root/tests/cuda_home.sh" clone/tests
  git init -q clone
  git -C clone add .
  git -C clone -c user.name=tests -c user.email=tests@localhost commit -q -m 'The working tree'
  url=file://$work/clone commit=$(git -C clone rev-parse HEAD)
}

cmake_build() {  # compiler way-to-find options...
  compiler=$1 finds=$2
  shift 2
  CXX=$compiler cmake -G Ninja -S . -B out -DCONSUMER_FINDS="$finds" "$@" && ninja -C out
  # A compiler may find the CUDA Toolkit by itself.
  grep -q "INCLUDES = .*/cccl" out/build.ninja || { echo 'no include path of the CUDA Toolkit'; exit 1; }
  ln -s out/consumer consumer
}
meson_build() {  # compiler...
  CXX=$* meson setup out . && ninja -C out
  ln -s out/consumer consumer
}
find_package() { cmake_build "$1" find_package -DCMAKE_PREFIX_PATH="$work/prefix"; }

case $way in
  include)
    "$@" -std=c++20 -fopenmp -I"$root/include" -isystem "$CUDA_HOME/include/cccl" -isystem "$CUDA_HOME/include" \
      consumer.cpp -o consumer ;;
  single)
    mkdir -p single/descent
    python3 "$root/docs/install/single.py" descent.hpp single/descent/descent.hpp
    "$@" -std=c++20 -fopenmp -Isingle -isystem "$CUDA_HOME/include" -Wall -Wextra -Werror consumer.cpp -o consumer
    ./consumer
    # A program and the library as one file, for which the compiler finds no header of the library.
    for example in quickstart own_rule; do
      python3 "$root/docs/install/single.py" --program "$root/examples/$example.cpp" one.cpp
      "$@" -std=c++20 -isystem "$CUDA_HOME/include" -Wall -Wextra -Werror one.cpp -o one
      ./one
    done
    if [ -x "$CUDA_HOME/bin/nvcc" ]; then
      python3 "$root/docs/install/single.py" --program "$root/examples/quickstart.cu" one.cu
      "$CUDA_HOME/bin/nvcc" -std=c++20 -Werror all-warnings -c one.cu -o one.o
    fi ;;
  meson)
    mkdir subprojects
    ln -s "$root" subprojects/descent
    meson_build "$@" ;;
  wrap)
    clone
    mkdir subprojects
    sed "s,<DESCENT_URL>,$url,; s,<DESCENT_COMMIT>,$commit," descent.wrap > subprojects/descent.wrap
    meson_build "$@" ;;
  pkg-config)
    install
    PKG_CONFIG_PATH=$work/prefix/share/pkgconfig
    export PKG_CONFIG_PATH
    # pkg-config may drop system folders from -I; folders given with -isystem are kept
    "$@" -std=c++20 -fopenmp $(pkg-config --cflags descent) consumer.cpp -o consumer $(pkg-config --libs descent) ;;
  cmake)
    install
    find_package "$1" ;;
  cmake-install)
    CXX=$1 cmake -G Ninja -S "$root/docs/install" -B descent -DCMAKE_INSTALL_PREFIX="$work/prefix"
    cmake --install descent
    find_package "$1" ;;
  fetch_content)
    clone
    cmake_build "$1" fetch_content -DDESCENT_URL="$url" -DDESCENT_COMMIT="$commit" ;;
  cpm)
    [ -f "$DESCENT_CPM" ] || { echo 'skipped: DESCENT_CPM does not name a CPM.cmake'; exit 77; }
    clone
    cmake_build "$1" cpm -DDESCENT_URL="$url" -DDESCENT_COMMIT="$commit" ;;
  conan)
    if ! conan --version 2>/dev/null | grep -q 'version 2'; then
      [ -x "$build/conan/bin/conan" ] ||
        timeout 120 python3 -m pip install -q --disable-pip-version-check --retries 0 --timeout 15 \
          --target "$build/conan" 'conan==2.*' || { echo 'skipped: Conan 2 is neither here nor on PyPI'; exit 77; }
      export PYTHONPATH="$build/conan" PATH="$build/conan/bin:$PATH"
    fi
    export CONAN_HOME="$work/home" CXX="$1"
    conan profile detect
    conan create "$root/docs/install" -s compiler.cppstd=20
    version=$(sed -n "s/^project.* version: '\([0-9.]*\)'.*/\1/p" "$root/meson.build")
    conan install --requires="descent/$version" -g CMakeDeps -g CMakeToolchain -of found -s compiler.cppstd=20
    cmake_build "$1" find_package -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_TOOLCHAIN_FILE="$work/found/conan_toolchain.cmake" ;;
  vcpkg)
    [ -x "$VCPKG_ROOT/vcpkg" ] || { echo 'skipped: VCPKG_ROOT does not name a folder with vcpkg'; exit 77; }
    "$VCPKG_ROOT/vcpkg" install descent --overlay-ports="$root/docs/install/vcpkg" --x-install-root="$work/installed" \
      --x-buildtrees-root="$work/trees" --x-packages-root="$work/packages" --binarysource=clear
    cmake_build "$1" find_package -DCMAKE_TOOLCHAIN_FILE="$VCPKG_ROOT/scripts/buildsystems/vcpkg.cmake" \
      -DVCPKG_INSTALLED_DIR="$work/installed" -DVCPKG_MANIFEST_MODE=OFF ;;
  separate)
    # The macros are those that PyTorch gives its extensions.
    for unit in separate separate_other; do
      "$CUDA_HOME/bin/nvcc" -std=c++20 -arch=sm_80 -rdc=true -D__CUDA_NO_HALF_OPERATORS__ \
        -D__CUDA_NO_HALF2_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__ \
        --expt-relaxed-constexpr -Werror all-warnings -I"$root/include" -c $unit.cu -o $unit.o
    done
    "$CUDA_HOME/bin/nvcc" -arch=sm_80 -rdc=true separate.o separate_other.o -o consumer
    "$build/gpu_device" || { echo 'linked, but not run: there is no device'; exit 0; } ;;
esac
./consumer
