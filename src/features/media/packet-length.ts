/** What a file states about one of its audio tracks. */
export interface TrackFacts {
  /** Codec by the name of mediabunny; null if it does not know it. */
  readonly codec: string | null
  /** Codec by the name of the container, such as `alac`. */
  readonly id: unknown
  readonly rate: number
  readonly channels: number
  /** Configuration of the decoder. */
  readonly config: Uint8Array | undefined
}

/** Lengths of the packets of a track, in seconds. */
export type PacketLengths =
  /** By the number of bytes in a packet. */
  | { readonly bySize: (bytes: number) => number }
  /** By the bytes of a packet. It is called for all packets of a track, in their order. */
  | { readonly byContent: (packet: Uint8Array) => number }

/** Samples of an AAC frame: usual and short, by the type of its object. */
const AAC_FRAME = { usual: [1_024, 960], lowDelay: [512, 480], unified: [768, 768] } as const
/** Maximum bytes of an AAC frame per channel. */
const MAX_AAC_FRAME_BYTES = 768
const AAC_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
]
/** kbit/s of MP3 by the index in its header: MPEG 1, and MPEG 2. */
const MP3_KILOBITS = [
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
] as const
const OPUS_RATE = 48_000
/** Maximum samples of an Opus packet: 120 ms. */
const MAX_OPUS_SAMPLES = 5_760
const FLAC_RATES = [
  0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000,
]
/** Maximum bytes of the header of a FLAC frame. */
export const FLAC_HEADER_BYTES = 16
const AMR_FRAME_SECONDS = 0.02
const ALAC_FRAME = 4_096
/** Maximum bytes of a sample in any codec. */
const MAX_SAMPLE_BYTES = 4

const CODECS: Readonly<Record<string, (track: TrackFacts) => PacketLengths>> = {
  aac: (track) => ({ bySize: aacLength(track) }),
  alac: alacLength,
  A_ALAC: alacLength,
  samr: () => ({ bySize: amrLength(32) }),
  sawb: () => ({ bySize: amrLength(61) }),
  mp3: () => ({ byContent: mp3Length }),
  opus: () => ({ byContent: opusLength }),
  vorbis: (track) => ({ byContent: vorbisLength(track) }),
  flac: (track) => ({ byContent: flacLength(track) }),
  ac3: () => ({ byContent: dolbyLength }),
  eac3: () => ({ byContent: dolbyLength }),
}

/**
 * Computes the lengths of a track's packets from the packets, so that no timestamp counts. A packet of an
 * unknown codec has at least the length of uncompressed sound of its size.
 */
export function packetLengths(track: TrackFacts): PacketLengths {
  const known = codecOf(track)
  if (known) return known(track)
  const bytesPerSecond = track.rate * track.channels * (bytesPerSample(track.codec) ?? MAX_SAMPLE_BYTES)
  return { bySize: (bytes) => bytes / bytesPerSecond }
}

/** Whether the frames in packets of this track are known. */
export function hasKnownFrames(track: TrackFacts): boolean {
  return codecOf(track) !== undefined
}

function codecOf({ codec, id }: TrackFacts): ((track: TrackFacts) => PacketLengths) | undefined {
  const name = codec ?? String(id)
  return Object.hasOwn(CODECS, name) ? CODECS[name] : undefined
}

/** Bytes per sample of an uncompressed codec, such as `pcm-s16`; undefined for others. */
export function bytesPerSample(codec: string | null): number | undefined {
  if (codec === 'ulaw' || codec === 'alaw') return 1
  const bits = /^pcm-[suf](\d+)/.exec(codec ?? '')?.[1]
  return bits === undefined ? undefined : Number(bits) / 8
}

/** AAC: ISO/IEC 14496-3, AudioSpecificConfig. A packet is a frame; one that is too large for that is several. */
function aacLength({ config, rate, channels }: TrackFacts): (bytes: number) => number {
  const { samples, coreRate } = (config && aacConfig(config)) ?? { samples: 1_024, coreRate: rate }
  const frameBytes = MAX_AAC_FRAME_BYTES * Math.max(1, channels)
  return (bytes) => (Math.max(1, Math.floor(bytes / frameBytes)) * samples) / coreRate
}

/** Samples of a frame, and their rate: of HE-AAC, that of its core, which is half the rate of its sound. */
function aacConfig(config: Uint8Array): { readonly samples: number; readonly coreRate: number } | undefined {
  const bits = new Bits(config)
  const readType = (): number => {
    const type = bits.read(5)
    return type === 31 ? 32 + bits.read(6) : type
  }
  const readRate = (): number => {
    const index = bits.read(4)
    return index === 15 ? bits.read(24) : (AAC_RATES[index] ?? 0)
  }
  let type = readType()
  const coreRate = readRate()
  bits.read(4)
  if (type === 5 || type === 29) {
    readRate()
    type = readType()
  }
  const [usual, short] = type <= 6 ? AAC_FRAME.usual : type === 42 ? AAC_FRAME.unified : AAC_FRAME.lowDelay
  const samples = bits.read(1) === 1 ? short : usual
  return coreRate > 0 ? { samples, coreRate } : undefined
}

/** Reads bits from the highest of each byte on. Bits beyond the end are 0. */
class Bits {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get left(): number {
    return this.#bytes.length * 8 - this.#at
  }

  read(count: number): number {
    let value = 0
    for (let i = 0; i < count; i++, this.#at++)
      value = value * 2 + (((this.#bytes[this.#at >> 3] ?? 0) >> (7 - (this.#at & 7))) & 1)
    return value
  }

  peek(count: number): number {
    const from = this.#at
    const value = this.read(count)
    this.#at = from
    return value
  }
}

/** MP3: the frames of a packet, by their headers. */
function mp3Length(packet: Uint8Array): number {
  let seconds = 0
  for (let at = 0; at + 4 <= packet.length; ) {
    const frame = mp3Frame(packet, at)
    seconds += frame?.seconds ?? 0
    at += frame?.bytes ?? 1
  }
  return seconds
}

function mp3Frame(packet: Uint8Array, at: number): { seconds: number; bytes: number } | undefined {
  const [first = 0, second = 0, third = 0] = packet.subarray(at, at + 3)
  const version = (second >> 3) & 3
  const layer = 4 - ((second >> 1) & 3)
  const base = [44_100, 48_000, 32_000][(third >> 2) & 3]
  if (first !== 0xff || second < 0xe0 || version === 1 || layer === 4 || third >= 0xf0 || !base)
    return undefined
  const isFirstVersion = version === 3
  const rate = base / (isFirstVersion ? 1 : version === 2 ? 2 : 4)
  const samples = layer === 1 ? 384 : layer === 2 || isFirstVersion ? 1_152 : 576
  const kilobits = layer === 3 ? (MP3_KILOBITS[isFirstVersion ? 0 : 1][third >> 4] ?? 0) : 0
  const bytes = Math.floor((samples * kilobits * 125) / rate) + ((third >> 1) & 1)
  // Other layers, and a header without a bit rate: the frame is the rest of the packet.
  return { seconds: samples / rate, bytes: kilobits === 0 ? packet.length : bytes }
}

/** Opus: RFC 6716, 3.1 and 3.2. */
function opusLength([first = 0, second = 0]: Uint8Array): number {
  const config = first >> 3
  const size = config & 3
  let samples: number
  if (config < 12) samples = [480, 960, 1_920, 2_880][size] ?? 0
  else if (config < 16) samples = size % 2 === 0 ? 480 : 960
  else samples = 120 << size
  const frames = [1, 2, 2, second & 63][first & 3] ?? 0
  return Math.min(samples * frames, MAX_OPUS_SAMPLES) / OPUS_RATE
}

/** Vorbis I: the blocks of two neighbouring packets overlap by half. */
function vorbisLength({ config = new Uint8Array() }: TrackFacts): (packet: Uint8Array) => number {
  let at = 1
  const readSize = (): number => {
    let size = 0
    let byte: number
    do size += byte = config[at++] ?? 0
    while (byte === 255)
    return size
  }
  const idBytes = readSize()
  const commentBytes = readSize()
  const id = Buffer.from(config.subarray(at, at + idBytes))
  if (id.length < 30) return () => 0
  const rate = id.readUInt32LE(12)
  const sizes = [1 << (id.readUInt8(28) & 15), 1 << (id.readUInt8(28) >> 4)]
  const modes = vorbisModes(config.subarray(at + idBytes + commentBytes))
  const mask = (1 << (32 - Math.clz32(modes.length - 1))) - 1
  let previous = 0
  return ([first = 1]) => {
    if ((first & 1) === 1) return 0
    const size = sizes[modes[(first >> 1) & mask] ?? 0] ?? 0
    const samples = previous === 0 ? 0 : (previous + size) / 4
    previous = size
    return samples / rate
  }
}

/**
 * Whether each mode has long blocks, as 1 or 0. Modes are at the end of the header, of which the rest has
 * parts of unknown size, so that it is read backwards.
 */
function vorbisModes(setup: Uint8Array): readonly number[] {
  const bits = new Bits(setup.toReversed())
  while (bits.left > 0 && bits.read(1) === 0);
  const flags: number[] = []
  let found: readonly number[] = [0]
  while (bits.left > 47 && flags.length < 64 && bits.read(8) < 64 && bits.read(32) === 0) {
    flags.unshift(bits.read(1))
    if (bits.peek(6) + 1 === flags.length) found = [...flags]
  }
  return found
}

/**
 * FLAC: RFC 9639, 9.1. Returns the length of the frames whose headers begin in these bytes, before `end`: a
 * packet, or a part of a file.
 */
export function flacLength({ config, rate }: TrackFacts): (bytes: Uint8Array, end?: number) => number {
  const streamRate = config && config.length >= 22 ? Buffer.from(config).readUIntBE(18, 3) >> 4 : rate
  return (bytes, end = bytes.length) => {
    let samples = 0
    for (let at = bytes.indexOf(0xff); at >= 0 && at < end; at = bytes.indexOf(0xff, at + 1))
      samples += flacFrame(bytes, at, streamRate)
    return samples / streamRate
  }
}

/** Samples of the frame that begins here; 0 if none does. */
function flacFrame(bytes: Uint8Array, from: number, streamRate: number): number {
  const byte = (at: number): number => bytes[from + at] ?? 0
  const sizeCode = byte(2) >> 4
  const rateCode = byte(2) & 15
  const hasSync = (byte(1) & 0xfe) === 0xf8
  if (!hasSync || sizeCode === 0 || rateCode === 15 || byte(3) >= 0xb0 || byte(3) % 2 === 1) return 0
  const ones = Math.clz32(~(byte(4) << 24))
  let at = 4 + Math.max(1, ones)
  let samples = sizeCode === 1 ? 192 : sizeCode < 6 ? 144 << sizeCode : 1 << sizeCode
  if (sizeCode === 6) samples = byte(at++) + 1
  if (sizeCode === 7) samples = byte(at++) * 256 + byte(at++) + 1
  let rate = rateCode === 0 ? streamRate : FLAC_RATES[rateCode]
  if (rateCode === 12) rate = byte(at++) * 1_000
  if (rateCode > 12) rate = (byte(at++) * 256 + byte(at++)) * (rateCode === 14 ? 10 : 1)
  return rate === streamRate && crc8(bytes, from, from + at) === bytes[from + at] ? samples : 0
}

/** The check sum of a FLAC header: its polynomial is x⁸ + x² + x + 1. */
function crc8(bytes: Uint8Array, from: number, to: number): number {
  let crc = 0
  for (let at = from; at < to; at++) {
    crc ^= bytes[at] ?? 0
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80 ? (crc << 1) ^ 0x07 : crc << 1) & 0xff
  }
  return crc
}

/** AC-3 and E-AC-3: the frames of a packet, by their headers. Further substreams sound at the same time. */
function dolbyLength(packet: Uint8Array): number {
  let seconds = 0
  for (let at = 0; packet[at] === 0x0b && packet[at + 1] === 0x77; ) {
    const [third = 0, fourth = 0, fifth = 0, sixth = 0] = packet.subarray(at + 2, at + 6)
    const base = [48_000, 44_100, 32_000][fifth >> 6]
    // AC-3
    if (sixth >> 3 <= 10) return base === undefined ? 0 : 1_536 / base
    const hasHalfRate = base === undefined
    const rate = base ?? [24_000, 22_050, 16_000][(fifth >> 4) & 3] ?? 48_000
    const blocks = hasHalfRate ? 6 : ([1, 2, 3, 6][(fifth >> 4) & 3] ?? 6)
    if (third >> 6 !== 1 && ((third >> 3) & 7) === 0) seconds += (blocks * 256) / rate
    at += (((third & 7) << 8) + fourth + 1) * 2
  }
  return seconds
}

function alacLength({ rate }: TrackFacts): PacketLengths {
  return { bySize: () => ALAC_FRAME / rate }
}

/** AMR: packets of one or more frames, each with at most `frameBytes`. */
function amrLength(frameBytes: number): (bytes: number) => number {
  return (bytes) => Math.max(1, Math.floor(bytes / frameBytes)) * AMR_FRAME_SECONDS
}
