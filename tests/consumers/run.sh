#!/bin/sh
# usage: run.sh include|single|meson|pkg-config|cmake project-root build-folder compiler...
# Builds and runs the consumer in one of the ways to use the library.
set -e
way=$1 root=$2 build=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/consumer.cpp" "$here/meson.build" "$here/CMakeLists.txt" "$work"
cd "$work"

install() {  # into $work/prefix, whatever prefix the project was configured with
  meson install -C "$build" --no-rebuild --quiet --destdir "$work/destdir"
  mv "$(dirname "$(dirname "$(find "$work/destdir" -path '*/include/descent')")")" "$work/prefix"
}

case $way in
  include)
    "$@" -std=c++20 -fopenmp -I"$root/include" -isystem "$CUDA_HOME/include/cccl" -isystem "$CUDA_HOME/include" \
      consumer.cpp -o consumer ;;
  single)
    mkdir -p single/descent
    python3 "$root/docs/install/single.py" descent.hpp single/descent/descent.hpp
    python3 "$root/docs/install/single.py" descent.cuh single/descent/descent.cuh
    "$@" -std=c++20 -fopenmp -Isingle -isystem "$CUDA_HOME/include" -Wall -Wextra -Werror consumer.cpp -o consumer
    [ ! -x "$CUDA_HOME/bin/nvcc" ] ||
      "$CUDA_HOME/bin/nvcc" -std=c++20 -Werror all-warnings -Isingle -c "$root/examples/quickstart.cu" -o quickstart.o ;;
  meson)
    mkdir subprojects
    ln -s "$root" subprojects/descent
    CXX=$* meson setup out . && ninja -C out
    ln -s out/consumer consumer ;;
  pkg-config)
    install
    PKG_CONFIG_PATH=$work/prefix/share/pkgconfig
    export PKG_CONFIG_PATH
    # pkg-config may drop system folders from -I; folders given with -isystem are kept
    "$@" -std=c++20 -fopenmp $(pkg-config --cflags descent) consumer.cpp -o consumer $(pkg-config --libs descent) ;;
  cmake)
    install
    CXX=$1 cmake -G Ninja -S . -B out -DCMAKE_PREFIX_PATH="$work/prefix" && ninja -C out
    ln -s out/consumer consumer ;;
esac
./consumer
