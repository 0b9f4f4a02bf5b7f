"""Holds the product's code to the standard headers it uses: an include of which no name stands in the file must go.

Run without arguments (ctest does); prints file, line and header of each. A header that the tables do not have is let through.
"""

import functools
import re
import unittest

from layering_test import INCLUDE, MAY_INCLUDE, ROOT, code_lines, source_files

# The names of each header; * stands for the rest of a word. These may be written without std::.
C_NAMES = {
    "cassert": "assert",
    "cctype": "isalnum isalpha iscntrl isdigit islower isprint ispunct isspace isupper isxdigit tolower toupper",
    "cerrno": "errno EACCES EAGAIN EBADF EEXIST EINTR EINVAL EIO ENO* EPERM EPIPE ERANGE ESRCH",
    "cfenv": "fe* FE_*",
    "cfloat": "FLT_* DBL_*",
    "climits": "CHAR_* INT_* LONG_* LLONG_* PATH_MAX SCHAR_* SHRT_* UCHAR_* UINT_* ULONG_* ULLONG_* USHRT_*",
    "cmath": "abs acos* asin* atan* cbrt* ceil* copysign* cos cosf cosh* erf* exp expf exp2* expm1* fabs* floor* fma* fmin* fmod* "
    "fpclassify frexp* hypot* ilogb* isfinite isinf isnan isnormal ldexp* lgamma* llrint* llround* log logf log10* log1p* log2* "
    "lrint* lround* modf* nearbyint* nextafter* pow powf remquo* rint* round roundf scalbn* signbit sin sinf sinh* sqrt* tan tanf "
    "tanh* tgamma* trunc truncf HUGE_VAL* INFINITY M_* NAN",
    "csignal": "kill raise sig_atomic_t sigaction sigaltstack sigemptyset sigfillset siginfo_t signal sigset_t SA_* SIG*",
    "cstdarg": "va_*",
    "cstddef": "byte max_align_t nullptr_t offsetof ptrdiff_t size_t NULL",
    "cstdint": "int*_t uint*_t INT*_C INT*_MAX INT*_MIN SIZE_MAX UINT*_C UINT*_MAX",
    "cstdio": "*printf *scanf f*close f*open feof ferror fflush fgetc fgets fileno fputc fputs fread fseek ftell fwrite getc getchar "
    "perror putc putchar puts remove rename rewind setvbuf stderr stdin stdout tmpfile ungetc BUFSIZ EOF FILE SEEK_*",
    "cstdlib": "_Exit abort abs aligned_alloc atexit ato* bsearch calloc *div exit free *getenv llabs malloc mk*temp posix_memalign "
    "qsort quick_exit rand realloc realpath setenv strto* system unsetenv EXIT_*",
    "cstring": "memchr memcmp memcpy memmove memset strcat strchr strcmp strcpy strcspn strdup strerror* strlen strncmp strncpy "
    "strrchr strsignal strspn strstr strtok*",
}
STD_NAMES = {
    "algorithm": "*_of *_bound *_element *_heap *_permutation adjacent_find binary_search clamp copy* count* equal equal_range fill* "
    "find* for_each* generate* includes inplace_merge is_partitioned is_sorted* iter_swap lexicographical_* max merge min minmax "
    "mismatch move_backward nth_element partial_sort* partition* remove* replace* reverse* rotate* sample search* set_* shift_* "
    "shuffle sort stable_* swap_ranges transform unique unique_copy",
    "array": "array to_array",
    "atomic": "atomic* memory_order*",
    "bit": "bit_* byteswap count* endian has_single_bit popcount rotl rotr",
    "charconv": "chars_format from_chars* to_chars*",
    "condition_variable": "condition_variable* cv_status",
    "exception": "*exception* terminate",
    "fstream": "*fstream filebuf",
    "functional": "bind* bit_* cref divides equal_to function greater* hash identity invoke less* logical_* mem_fn minus modulus "
    "multiplies negate not_* plus ref reference_wrapper",
    "iosfwd": "*stream *streambuf",
    "iostream": "cerr cin clog cout",
    "istream": "getline istream ws",
    "iterator": "*inserter *iterator* advance begin data distance empty end next prev size sized_sentinel_for ssize",
    "limits": "numeric_limits",
    "map": "map multimap",
    "memory": "*_ptr addressof align allocat* assume_aligned construct_at default_delete destroy* enable_shared_from_this "
    "make_shared* make_unique* pointer_traits to_address uninitialized_*",
    "mutex": "*lock *mutex call_once lock_guard once_flag",
    "new": "align_val_t bad_alloc bad_array_new_length hardware_* launder new_handler nothrow* set_new_handler",
    "numeric": "*_scan *reduce accumulate adjacent_difference gcd inner_product iota lcm midpoint partial_sum",
    "optional": "*optional nullopt*",
    "ostream": "endl flush ostream",
    "queue": "*queue",
    "random": "*_distribution *_engine* generate_canonical minstd* mt19937* random_device seed_seq",
    "set": "set multiset",
    "span": "as_bytes as_writable_bytes dynamic_extent span",
    "sstream": "*stringstream stringbuf",
    "stdexcept": "*_error invalid_argument out_of_range",
    "string": "basic_string char_traits getline sto* string to_string u*string",
    "string_view": "*string_view *string_view_literals",
    "system_error": "*error_* errc system_error",
    "thread": "*thread",
    "type_traits": "*_constant *_type* add_* conditional* conjunction* decay* disjunction* enable_if* extent* false_type has_* "
    "invoke_result* is_* make_*signed* negation* rank* remove_* true_type void_t",
    "utility": "*_sequence* as_const cmp_* declval exchange forward* get in_place* in_range index_sequence* move pair make_pair "
    "piecewise_construct swap to_underlying tuple_*",
    "variant": "*variant* get get_if holds_alternative monostate visit",
    **{name: name for name in "chrono complex deque filesystem initializer_list list numbers unordered_map vector".split()},
}
SYNTAX = {"new": r"|\bnew\s*\(|\boperator (new|delete)\b"}
LITERAL = re.compile(r"'(?:\\.|[^'\\])'|\"(?:\\.|[^\"\\])*\"")


@functools.cache
def uses(header):
    """What stands in a file that uses a header, as a regular expression; None for a header that the tables do not have."""
    header = re.sub(r"^(\w+)\.h$", r"c\1", header)  # C's own name for it
    names = C_NAMES.get(header) or STD_NAMES.get(header)
    scope = r"(?<!\.)(?<!->)" if header in C_NAMES else r"\bstd::(?:\w+::)*"
    words = names and "|".join(names.replace("*", r"\w*").split())
    return words and re.compile(rf"{scope}\b(?:{words})\b{SYNTAX.get(header, '')}")


def unused_includes(text):
    """(line number, header) of each standard header of which a source has no name."""
    lines = [(number, line, INCLUDE.match(line)) for number, line in code_lines(text)]
    code = "\n".join(LITERAL.sub('""', line) for _, line, include in lines if not include)
    headers = [(number, include.group(1)) for number, line, include in lines if include and "<" in line]
    return [(number, header) for number, header in headers if uses(header) and not uses(header).search(code)]


class IncludesTest(unittest.TestCase):
    def test_rule(self):
        for header, code in {"vector": "std::vector<int> v;", "stdint.h": "int8_t x;", "new": "new (p) T", "x.h": ""}.items():
            self.assertEqual(unused_includes(f"#include <{header}>\n{code}"), [])
        for header, code in {"vector": "// std::vector", "cstdlib": "x.free();", "cctype": 'Say("isdigit");'}.items():
            self.assertEqual(unused_includes(f"\n#include <{header}>\n{code}"), [(2, header)])

    def test_sources_use_what_they_include(self):
        lines = []
        for path in (path for path in source_files() if path.parts[0] in MAY_INCLUDE):
            for number, header in unused_includes((ROOT / path).read_text(encoding="utf-8")):
                lines.append(f"{path}:{number}: <{header}> is included, and nothing of it used")
        self.assertFalse(lines, "\n" + "\n".join(lines))


if __name__ == "__main__":
    unittest.main()
