# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: names.py include-folder

Checks that for each name of the standard library that a header uses, it or a header of the library that it includes has
the standard header of that name. So no header depends on what a user, another header or a standard library happens to
include; alone.sh, which compiles each header behind all standard ones, checks the library's own includes."""
import functools
import pathlib
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

names = {
    "algorithm": "all_of any_of clamp copy_n count fill fill_n find find_if max max_element min minmax_element none_of "
                 "partition_point ranges::adjacent_find ranges::all_of ranges::any_of ranges::copy ranges::count_if "
                 "ranges::fill ranges::find ranges::lower_bound ranges::max ranges::max_element ranges::min_element "
                 "ranges::copy_if ranges::none_of ranges::partial_sort ranges::reverse ranges::sort ranges::stable_sort sort stable_sort",
    "array": "array", "atomic": "atomic atomic_thread_fence memory_order_acquire memory_order_relaxed memory_order_release",
    "bit": "bit_ceil endian", "cctype": "isalnum", "charconv": "from_chars to_chars", "chrono": "chrono",
    "cmath": "exp floor llround log pow sqrt", "concepts": "convertible_to integral move_constructible same_as signed_integral",
    "condition_variable": "condition_variable condition_variable_any cv_status", "cstddef": "byte nullptr_t ptrdiff_t size_t to_integer",
    "cstdint": "int16_t int32_t int64_t int8_t uint16_t uint32_t uint64_t uint8_t uintptr_t",
    "cstdio": "FILE fclose fflush fopen fprintf fscanf rename snprintf sscanf", "cstdlib": "_Exit atexit free getenv qsort",
    "cstring": "memcmp memcpy memset", "deque": "deque",
    "exception": "current_exception exception exception_ptr nested_exception rethrow_exception rethrow_if_nested throw_with_nested "
                 "uncaught_exceptions",
    "filesystem": "filesystem", "fstream": "ifstream", "functional": "function plus ranges::greater",
    "future": "async future future_status launch", "initializer_list": "initializer_list",
    "iterator": "back_inserter default_sentinel_t istreambuf_iterator", "limits": "numeric_limits", "map": "map",
    "memory": "make_shared make_unique shared_ptr weak_ptr unique_ptr", "memory_resource": "pmr::memory_resource",
    "mutex": "defer_lock lock_guard mutex timed_mutex try_to_lock unique_lock", "new": "align_val_t bad_alloc launder nothrow",
    "numeric": "accumulate iota lcm", "optional": "nullopt optional", "random": "mt19937 random_device",
    "ranges": "ranges::range ranges::range_value_t", "set": "set", "span": "as_bytes as_writable_bytes span",
    "sstream": "istringstream ostringstream",
    "stdexcept": "invalid_argument logic_error out_of_range runtime_error", "string": "getline string to_string",
    "string_view": "string_view", "system_error": "errc error_code generic_category make_error_code",
    "thread": "jthread this_thread thread", "tuple": "apply tie tuple tuple_cat",
    "type_traits": "bool_constant false_type true_type conditional_t decay_t integral_constant invoke_result_t is_aggregate_v is_arithmetic_v is_array_v "
                   "is_base_of_v is_class_v is_const_v is_convertible_v is_empty_v is_enum_v is_floating_point_v is_scalar_v underlying_type_t "
                   "is_integral_v is_invocable_r_v is_invocable_v is_lvalue_reference_v is_member_pointer_v "
                   "is_nothrow_invocable_v is_object_v is_pointer_v is_same_v is_signed_v is_trivially_copyable_v "
                   "is_unsigned_v is_void_v remove_const_t remove_cv_t remove_cvref_t remove_extent_t remove_pointer_t "
                   "remove_reference_t type_identity type_identity_t",
    "unordered_map": "unordered_map", "unordered_set": "unordered_set",
    "utility": "as_const cmp_greater cmp_less declval exchange forward index_sequence index_sequence_for integer_sequence "
               "make_index_sequence make_integer_sequence move pair swap",
    "variant": "monostate variant visit", "vector": "vector",
}
# in several headers, or of one that <type_traits>, <tuple> or a container implies
anywhere = set("_ abs begin chrono_literals data end erase erase_if get has_unique_object_representations_v hash mdspan size "
               "ssize stop_token tuple_element_t tuple_size variant_size".split())
header_of = {name: header for header, all_names in names.items() for name in all_names.split()}
root = pathlib.Path(sys.argv[1])
use = re.compile(r"\bstd::((?:ranges::|pmr::)?\w+)")
include = re.compile(r"^ *# *include <([^>]+)>", re.M)


@functools.cache
def text_of(header):
    text = (root / header).read_text(encoding="utf-8")
    return re.sub(r"//[^\n]*", "", text)


@functools.cache
def includes_of(header):
    """All that the header includes, also by other headers of the library."""
    direct = set(include.findall(text_of(header)))
    return direct.union(*(includes_of(one) for one in direct if one.startswith("descent/")))


problems, count = [], 0
for path in sorted(root.rglob("*.*")):
    header = str(path.relative_to(root))
    for name in sorted(set(use.findall(text_of(header)))):
        count += 1
        wanted = header_of.get(name)
        if wanted and wanted not in includes_of(header):
            problems.append(f"{header} uses std::{name} without <{wanted}>")
        if not wanted and name not in anywhere:
            problems.append(f"{header} uses std::{name}, which this test does not know")
print("\n".join(problems))
print(f"{count} uses of names, {len(problems)} wrong")
sys.exit(bool(problems) or not count)
