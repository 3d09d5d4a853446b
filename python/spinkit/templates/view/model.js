// SPDX-License-Identifier: Apache-2.0
// Reads Perfetto traces of spinkit: protocol buffers, with the field numbers of Perfetto's public repository.
"use strict";

/** Wire format of protocol buffers; `at` is the next byte. Numbers are exact below 2^53. */
class Wire {
  constructor(bytes, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  varint() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127, scale = 128;
    do {
      if (this.at >= this.end) throw new Error(`the file ends within a number, at byte ${this.at}`);
      byte = bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  }

  /** Sets `field` and `wire`, and for a message `from` and `to`; returns false at the end. */
  next() {
    if (this.at >= this.end) return false;
    const key = this.varint();
    this.field = key >>> 3;
    this.wire = key & 7;
    if (this.wire === 2) {
      const length = this.varint();
      this.from = this.at;
      this.to = this.at += length;
    } else if (this.wire === 0) {
      this.value = this.varint();
    } else if (this.wire === 1 || this.wire === 5) {
      this.from = this.at;
      this.to = this.at += this.wire === 1 ? 8 : 4;
    } else {
      throw new Error(`byte ${this.at} is no field of a trace`);
    }
    if (this.at > this.end) throw new Error(`the file ends within a field, at byte ${this.at}`);
    return true;
  }

  within() {
    return new Wire(this.bytes, this.from, this.to);
  }

  text() {
    return new TextDecoder().decode(this.bytes.subarray(this.from, this.to));
  }
}

/** Typed array that grows. */
class Column {
  constructor(kind, capacity = 1024) {
    this.kind = kind;
    this.data = new kind(capacity);
    this.length = 0;
  }

  push(value) {
    if (this.length === this.data.length) {
      const larger = new this.kind(2 * this.length);
      larger.set(this.data);
      this.data = larger;
    }
    this.data[this.length++] = value;
  }

  done() {
    return this.data.subarray(0, this.length);
  }
}

/** Timeline of a file. Times are picoseconds. */
class Model {
  constructor(bytes) {
    this.bytes = bytes;
    this.processes = []; // names, in the order of the file
    this.lanes = []; // {process, name, depth, slices: Uint32Array of slice numbers, by time}
    this.counters = []; // {process, name, unit, at, value}
    this.names = []; // texts of slices
    this.argumentNames = new Map();
    this.argumentTexts = new Map();
    this.read();
  }

  read() {
    const start = new Column(Float64Array), end = new Column(Float64Array), name = new Column(Uint32Array);
    const lane = new Column(Uint32Array), place = new Column(Float64Array);
    const from = new Column(Uint32Array), to = new Column(Uint32Array); // arrows between slices
    const nameOf = new Map(), tracks = new Map(), counterOf = new Map(), processOf = new Map(), latest = new Map();
    const flows = [], file = new Wire(this.bytes);

    const intern = (wire) => {
      while (wire.next()) {
        const table = { 2: nameOf, 3: this.argumentNames, 29: this.argumentTexts }[wire.field];
        if (!table) continue;
        const entry = wire.within();
        let number = 0, text = "";
        while (entry.next()) {
          if (entry.field === 1) number = entry.value;
          if (entry.field === 2) text = entry.text();
        }
        if (table === nameOf) {
          nameOf.set(number, this.names.length);
          this.names.push(text);
        } else {
          table.set(number, text);
        }
      }
    };

    const describe = (wire) => {
      let uuid = 0, parent = 0, text = "", process = null, thread = null, counter = null;
      while (wire.next()) {
        if (wire.field === 1) uuid = wire.value;
        if (wire.field === 2) text = wire.text();
        if (wire.field === 5) parent = wire.value;
        if (wire.field === 3 || wire.field === 4 || wire.field === 8) {
          const inner = wire.within(), wanted = { 3: 6, 4: 5, 8: 6 }[wire.field];
          let found = "";
          while (inner.next()) if (inner.field === wanted) found = inner.text();
          if (wire.field === 3) process = found;
          if (wire.field === 4) thread = found;
          if (wire.field === 8) counter = found;
        }
      }
      if (process !== null) {
        processOf.set(uuid, this.processes.length);
        this.processes.push(process);
      }
      if (thread !== null) tracks.set(uuid, { process: processOf.get(parent), name: thread, lanes: [], ends: [] });
      if (counter !== null) {
        const made = { process: processOf.get(parent), name: text, unit: counter };
        counterOf.set(uuid, { ...made, at: new Column(Float64Array), value: new Column(Float64Array) });
      }
    };

    const take = (wire, timestamp, place_) => {
      let type = 0, text = 0, track = 0, value = 0, starts = 0, lasts = 0, arguments_ = 0;
      flows.length = 0;
      while (wire.next()) {
        if (wire.field === 4) {
          // The writer puts start_ps and dur_ps first.
          if (arguments_++ < 2) {
            const inner = wire.within();
            let key = 0, number = 0;
            while (inner.next()) {
              if (inner.field === 1) key = inner.value;
              if (inner.field === 3) number = inner.value;
            }
            const of = this.argumentNames.get(key);
            if (of === "start_ps") starts = number;
            if (of === "dur_ps") lasts = number;
          }
        } else if (wire.field === 9) type = wire.value;
        else if (wire.field === 10) text = wire.value;
        else if (wire.field === 11) track = wire.value;
        else if (wire.field === 30) value = wire.value;
        else if (wire.field === 47 || wire.field === 48) {
          const view = new DataView(wire.bytes.buffer, wire.bytes.byteOffset + wire.from, 8);
          const high = view.getUint32(4, true), low = view.getUint32(0, true);
          flows.push(wire.field === 47, high < 1 << 21 ? high * 2 ** 32 + low : view.getBigUint64(0, true));
        }
      }
      if (type === 4) {
        const counter = counterOf.get(track);
        counter.at.push(timestamp * 1000);
        // Negative values are 64-bit two's complement.
        counter.value.push(value >= 2 ** 63 ? value - 2 ** 64 : value);
      }
      if (type !== 1) return;
      const row = tracks.get(track), number = start.length;
      while (row.ends.length > 0 && row.ends[row.ends.length - 1] <= starts) row.ends.pop();
      const depth = row.ends.length;
      row.ends.push(starts + lasts);
      if (depth === row.lanes.length) {
        row.lanes.push(this.lanes.length);
        this.lanes.push({ process: row.process, name: row.name, depth, slices: new Column(Uint32Array, 16) });
      }
      start.push(starts);
      end.push(starts + lasts);
      name.push(nameOf.get(text));
      lane.push(row.lanes[depth]);
      place.push(place_);
      this.lanes[row.lanes[depth]].slices.push(number);
      for (let index = 0; index < flows.length; index += 2) {
        const flow = flows[index + 1];
        if (latest.has(flow)) {
          from.push(latest.get(flow));
          to.push(number);
        }
        if (flows[index]) latest.set(flow, number);
        else latest.delete(flow);
      }
    };

    while (file.next()) {
      if (file.field !== 1 || file.wire !== 2) throw new Error(`byte ${file.at} is no packet of a trace`);
      const packet = file.within();
      let timestamp = 0, event = null, place_ = 0;
      while (packet.next()) {
        if (packet.field === 8) timestamp = packet.value;
        else if (packet.field === 12) intern(packet.within());
        else if (packet.field === 60) describe(packet.within());
        else if (packet.field === 11) {
          place_ = packet.from * 2 ** 22 + (packet.to - packet.from);
          event = packet.within();
        }
      }
      if (event !== null) take(event, timestamp, place_);
    }

    Object.assign(this, { start: start.done(), end: end.done(), name: name.done(), lane: lane.done() });
    this.place = place.done();
    this.arrows = { from: from.done(), to: to.done() };
    for (const one of this.lanes) one.slices = one.slices.done();
    // Rows of a process keep the order of its tracks; the lanes of a track follow each other.
    const order = [...tracks.values()].flatMap((track) => track.lanes);
    this.rows = order;
    this.counters = [...counterOf.values()].map((one) => ({ ...one, at: one.at.done(), value: one.value.done() }));
    this.length = this.end.reduce((most, one) => (one > most ? one : most), 0);
    for (const one of this.counters) if (one.at.length > 0) this.length = Math.max(this.length, one.at[one.at.length - 1]);
  }

  /** Returns the arguments of a slice besides its times. */
  arguments(slice) {
    const place = this.place[slice], from = Math.floor(place / 2 ** 22);
    const wire = new Wire(this.bytes, from, from + (place % 2 ** 22)), found = [];
    while (wire.next()) {
      if (wire.field !== 4) continue;
      const inner = wire.within();
      let key = 0, value = 0;
      while (inner.next()) {
        if (inner.field === 1) key = inner.value;
        if (inner.field === 3) value = inner.value;
        if (inner.field === 17) value = this.argumentTexts.get(inner.value);
      }
      const name = this.argumentNames.get(key);
      if (name !== "start_ps" && name !== "dur_ps") found.push([name, value]);
    }
    return found;
  }

  /** Returns the slices before and after a slice on its arrows. */
  neighbours(slice) {
    const before = [], after = [], { from, to } = this.arrows;
    for (let index = 0; index < from.length; index++) {
      if (to[index] === slice) before.push(from[index]);
      if (from[index] === slice) after.push(to[index]);
    }
    return { before, after };
  }

  /** Returns the number of the first slice of a lane that ends after a time. */
  firstAfter(lane, time) {
    const slices = lane.slices;
    let low = 0, high = slices.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.end[slices[middle]] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Returns the number of the first slice of a lane that starts at a time or later. */
  firstFrom(lane, time) {
    const slices = lane.slices;
    let low = 0, high = slices.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[slices[middle]] >= time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Sums up the interval [from, to): for each name the slices, their time within it, and the longest. */
  summary(from, to) {
    const names = new Map(), lanes = [];
    for (const lane of this.lanes) {
      let busy = 0;
      const last = this.firstFrom(lane, to);
      for (let index = this.firstAfter(lane, from); index < last; index++) {
        const slice = lane.slices[index];
        const time = Math.min(to, this.end[slice]) - Math.max(from, this.start[slice]);
        const text = this.names[this.name[slice]];
        let one = names.get(text);
        if (!one) names.set(text, (one = { name: text, count: 0, time: 0, longest: 0 }));
        one.count++;
        one.time += time;
        one.longest = Math.max(one.longest, this.end[slice] - this.start[slice]);
        busy += time;
      }
      if (busy > 0) lanes.push({ lane, busy });
    }
    return { names: [...names.values()].sort((a, b) => b.time - a.time), lanes: lanes.sort((a, b) => b.busy - a.busy) };
  }

  /** Returns groups of 4^level slices of a lane: start, end, time covered, and the longest slice of each. */
  groups(lane, level) {
    lane.levels ??= [];
    while (lane.levels.length < level) {
      const below = lane.levels[lane.levels.length - 1];
      const count = below ? below.start.length : lane.slices.length;
      const size = Math.ceil(count / 4), made = {
        start: new Float64Array(size), end: new Float64Array(size), busy: new Float64Array(size), longest: new Uint32Array(size),
      };
      for (let index = 0; index < size; index++) {
        let most = -1, end = 0, busy = 0;
        for (let part = 4 * index; part < Math.min(count, 4 * index + 4); part++) {
          const slice = below ? below.longest[part] : lane.slices[part];
          const time = this.end[slice] - this.start[slice];
          if (time > most) {
            most = time;
            made.longest[index] = slice;
          }
          end = Math.max(end, below ? below.end[part] : this.end[slice]);
          busy += below ? below.busy[part] : time;
        }
        made.start[index] = below ? below.start[4 * index] : this.start[lane.slices[4 * index]];
        made.end[index] = end;
        made.busy[index] = busy;
      }
      lane.levels.push(made);
    }
    return lane.levels[level - 1];
  }
}

if (typeof module !== "undefined") module.exports = { Model };
