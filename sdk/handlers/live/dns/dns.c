/* SPDX-License-Identifier: Apache-2.0 */
/* An authoritative name server (RFC 1035) for the addresses of a table in the card, with answers for `dig`. */
#include "../common/live.h"

/* A name, with the length of each label in front of it, and its address. */
struct record {
    const char *name;
    uint8_t address[4];
};

static const struct record records[] = {
    {"\4spin\4test", {10, 0, 0, 1}},
    {"\3www\4spin\4test", {10, 0, 0, 80}},
    {"\4card\4spin\4test", {10, 0, 0, 1}},
};

struct dns {
    uint16_t id, flags, questions, answers, authorities, additional;
} __attribute__((__packed__));

enum { QUERY_FLAG = 0x8000, OPCODE = 0x7800, AUTHORITATIVE = 0x0400, RECURSION_DESIRED = 0x0100 };
enum { FORMAT_ERROR = 1, NO_SUCH_NAME = 3, NOT_IMPLEMENTED = 4 };
enum { TYPE_A = 1, TYPE_ANY = 255, CLASS_IN = 1, TTL = 60, NAME_MOST = 255 };

static uint8_t lower(uint8_t letter) { return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter; }

/* Returns the bytes of the name at `name`, with its end; 0 if it is not whole. Questions have no compressed names. */
static uint32_t name_size(const uint8_t *name, uint32_t most) {
    uint32_t size = 0;
    if (most > NAME_MOST)
        most = NAME_MOST;
    while (size < most && name[size]) {
        if (name[size] > 63)
            return 0;
        size += 1 + name[size];
    }
    return size < most ? size + 1 : 0;
}

static const struct record *find(const uint8_t *name, uint32_t size) {
    for (uint32_t i = 0; i < sizeof records / sizeof *records; i++) {
        const char *known = records[i].name;
        if (strlen(known) + 1 != size)
            continue;
        uint32_t at = 0;
        while (at < size && lower(name[at]) == (uint8_t)known[at])
            at++;
        if (at == size)
            return &records[i];
    }
    return NULL;
}

static uint32_t put16(uint8_t *to, uint32_t value) {
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
    return 2;
}

__handler__ void dns_ph(handler_args_t *args) {
    struct live_packet packet, reply;
    uint8_t *data;
    uint32_t size;
    if (!live_ip(args->task, &packet))
        return;
    udp_hdr_t *udp = live_udp(&packet, &data, &size);
    uint8_t *buffer = live_buffer(args);
    if (!udp || !buffer || size < sizeof(struct dns))
        return;
    const struct dns *query = (const struct dns *)data;
    uint32_t flags = ntohs(query->flags);
    if (flags & QUERY_FLAG)
        return; /* an answer */
    const uint8_t *question = data + sizeof *query;
    uint32_t left = size - sizeof *query, name = name_size(question, left), code = 0, answers = 0;
    bool is_whole = name && name + 4 <= left && ntohs(query->questions) == 1;
    uint8_t *out = live_copy(&packet, udp, buffer, &reply);
    struct dns *header = (struct dns *)out;
    uint32_t end = sizeof *header;
    if (flags & OPCODE) {
        code = NOT_IMPLEMENTED;
    } else if (!is_whole) {
        code = FORMAT_ERROR;
    } else {
        memcpy(out + end, question, name + 4);
        end += name + 4;
        const struct record *record = find(question, name);
        uint32_t type = (uint32_t)question[name] << 8 | question[name + 1];
        uint32_t class = (uint32_t)question[name + 2] << 8 | question[name + 3];
        if (!record) {
            code = NO_SUCH_NAME;
        } else if ((type == TYPE_A || type == TYPE_ANY) && class == CLASS_IN) {
            end += put16(out + end, 0xc000 | sizeof *header); /* the name of the question */
            end += put16(out + end, TYPE_A);
            end += put16(out + end, CLASS_IN);
            end += put16(out + end, 0);
            end += put16(out + end, TTL);
            end += put16(out + end, sizeof record->address);
            memcpy(out + end, record->address, sizeof record->address);
            end += sizeof record->address;
            answers = 1;
        }
    }
    header->id = query->id;
    header->flags = htons((uint16_t)(QUERY_FLAG | AUTHORITATIVE | (flags & (OPCODE | RECURSION_DESIRED)) | code));
    header->questions = htons(end > sizeof *header);
    header->answers = htons((uint16_t)answers);
    header->authorities = header->additional = 0;
    live_answer_udp(&reply, (udp_hdr_t *)reply.payload, end);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = dns_ph;
    *th = NULL;
    *handler_mem = NULL;
}
