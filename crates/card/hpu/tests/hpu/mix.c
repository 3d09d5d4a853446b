/* A device program for the tests of the ELF reader and the benchmarks: 64-bit arithmetic, a jump table, data, line
 * numbers; a compute loop; a handler of some 20 instructions.
 *
 *   zig cc -target riscv32-freestanding-ilp32 -mcpu=generic_rv32+m+a+c -O2 -g -nostdlib -fno-sanitize=all \
 *     -fwrapv -ffile-prefix-map=$PWD=. -static -Wl,-T,mix.ld mix.c -o mix.elf */ /* mix-arm.elf: arm.rs */
// clang-format off: mix.elf has these line numbers
typedef unsigned u32;
typedef unsigned long long u64;

static u32 counter = 5;
static u32 bins[16];

/* Equivalent in Rust: `mix` in elf.rs. */
u32 mix(u32 seed, u32 rounds, u32 step)
{
    u64 x = (u64)seed << 32 | step;
    for (u32 i = 1; i <= rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bins[x & 15] += (u32)(x >> 40) / i;
        switch (x & 7) {
        case 0: counter += bins[3]; break;
        case 1: counter *= 3; break;
        case 2: counter -= (int)x % -7; break;
        case 3: counter ^= (u32)(x >> 32); break;
        case 5: counter = counter << 5 | counter >> 27; break;
        case 6: counter = ~counter; break;
        default: counter += (u32)((long long)(int)x * (int)(x >> 32)); break;
        }
    }
    for (int i = 0; i < 16; i++)
        counter = counter * 31 + bins[i];
    return counter;
}

/* A compute loop: mixing as in SHA-2. */
u32 hash(u32 seed, u32 rounds, u32 step)
{
    u32 a = seed, b = ~seed, c = seed ^ step, d = step;
    for (u32 i = 0; i < rounds; i++) {
        u32 t = d + ((b & c) | (~b & a)) + (a >> 6 ^ a << 26) + (a >> 11 ^ a << 21) + i;
        d = c;
        c = b;
        b = a + t;
        a = t + ((b ^ c) & d) + (b >> 2 | b << 30);
    }
    return a ^ b ^ c ^ d;
}

/* As short as a header handler: a decision, some fields, some stores. */
u32 header(u32 *state, u32 length, u32 source)
{
    if (length > 4096)
        return 4;
    u32 bin = source >> 28;
    state[bin] += length;
    state[bin ^ 1] = state[bin] ^ source;
    return length & 1 ? 2 : 3;
}
