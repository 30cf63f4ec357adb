import { expect, test } from 'vitest'
import { flacFrame } from '../../../test/fixtures/recording.ts'
import { packetLengths, type TrackFacts } from './packet-length.ts'

const TRACK: TrackFacts = { codec: null, id: null, rate: 48_000, channels: 2, config: undefined }

/** Seconds of these packets of a track. */
function seconds(
  track: Partial<TrackFacts>,
  ...packets: readonly (readonly number[] | Uint8Array)[]
): number {
  const lengths = packetLengths({ ...TRACK, ...track })
  const of = (bytes: Uint8Array): number =>
    'bySize' in lengths ? lengths.bySize(bytes.length) : lengths.byContent(bytes)
  return packets.reduce((sum, packet) => sum + of(Uint8Array.from(packet)), 0)
}

test.each([
  ['AAC', [0x14, 0x08], 1_024 / 16_000],
  ['AAC with frames of 960 samples', [0x14, 0x0c], 960 / 16_000],
  // Object type 5, core of 24 kHz, one channel, sound of 48 kHz, object type 2.
  ['HE-AAC', [0x2b, 0x09, 0x88, 0x00], 1_024 / 24_000],
  ['AAC-LD', [0xbb, 0x08], 512 / 24_000],
  // Index 15, and a rate of 10,000 Hz.
  ['AAC of a rate without an index', [0x17, 0x80, 0x13, 0x88, 0x08], 1_024 / 10_000],
])('the length of a packet of %s is that of its frame', (_, config, length) => {
  expect(seconds({ codec: 'aac', config: Uint8Array.from(config) }, [1, 2])).toBeCloseTo(length, 9)
})

test('an AAC packet of more bytes than a frame can have counts as several frames', () => {
  const track = { codec: 'aac', channels: 1, config: Uint8Array.of(0x14, 0x08) }
  expect(seconds(track, new Uint8Array(768))).toBeCloseTo(0.064, 9)
  expect(seconds(track, new Uint8Array(7_680))).toBeCloseTo(0.64, 9)
})

// RFC 6716, 3.1 and 3.2: the configuration in five bits, then the number of frames.
test.each([
  ['SILK, 10 ms', [0 << 3], 0.01],
  ['SILK, 60 ms', [11 << 3], 0.06],
  ['hybrid, 20 ms', [13 << 3], 0.02],
  ['hybrid, 10 ms', [14 << 3], 0.01],
  ['CELT, 2.5 ms', [16 << 3], 0.0025],
  ['CELT, 20 ms', [31 << 3], 0.02],
  ['two equal frames of 20 ms', [(1 << 3) | 1], 0.04],
  ['two different frames of 20 ms', [(1 << 3) | 2], 0.04],
  ['five frames of 20 ms', [(1 << 3) | 3, 5], 0.1],
  ['more than the 120 ms that a packet may have', [(11 << 3) | 3, 63], 0.12],
  ['nothing', [], 0.01],
])('the length of an Opus packet is that of its frames: %s', (_, packet, length) => {
  expect(seconds({ codec: 'opus' }, packet)).toBeCloseTo(length, 9)
})

test('the length of an MP3 packet is that of all frames in it', () => {
  // 128 kbit/s, 44.1 kHz: 417 bytes. 8 kbit/s, 16 kHz: 36 bytes.
  const first = new Uint8Array(417)
  first.set([0xff, 0xfb, 0x90, 0xc0])
  const second = new Uint8Array(36)
  second.set([0xff, 0xf3, 0x18, 0xc0])
  expect(seconds({ codec: 'mp3' }, first)).toBeCloseTo(1_152 / 44_100, 9)
  expect(seconds({ codec: 'mp3' }, second)).toBeCloseTo(576 / 16_000, 9)
  const three = Buffer.concat([Buffer.of(0), second, second, second])
  expect(seconds({ codec: 'mp3' }, three)).toBeCloseTo((3 * 576) / 16_000, 9)
})

test('the length of a FLAC packet is that of all frames in it', () => {
  const two = Buffer.concat([flacFrame(0), flacFrame(200)])
  expect(seconds({ codec: 'flac', rate: 8_000 }, two, flacFrame(3))).toBeCloseTo((3 * 4_096) / 8_000, 9)
  const damaged = flacFrame(0)
  damaged[4] = 1
  expect(seconds({ codec: 'flac', rate: 8_000 }, damaged)).toBe(0)
})

test('the length of a Vorbis packet is half of its block and of the one before', () => {
  const id = Buffer.alloc(30)
  id.writeUInt32LE(16_000, 12)
  // Blocks of 256 and 2,048 samples.
  id.writeUInt8(0xb8, 28)
  // Two modes, of which the first has short blocks, from the lowest bit on: the number of modes less 1 in six
  // bits; for each the flag, 32 bits of 0 and its mapping in eight bits; the framing bit.
  const bits = ['100000', '0', '0'.repeat(40), '1', '0'.repeat(32), '10000000', '1'].join('')
  const setup = Buffer.alloc(40)
  Array.from(bits, Number).forEach((bit, i) => {
    const at = setup.length * 8 - bits.length - 3 + i
    setup[at >> 3] = (setup[at >> 3] ?? 0) | (bit << (at & 7))
  })
  const config = Buffer.concat([Buffer.of(2, id.length, 4), id, Buffer.from('note'), setup])
  const [short, long, header] = [[0b00], [0b10], [0b01]]
  // Nothing, 512 + 512, 512 + 64 and 64 + 64 samples.
  expect(seconds({ codec: 'vorbis', config }, header, long, long, short, short)).toBeCloseTo(
    1_728 / 16_000,
    9,
  )
})

// The sync word, and where rate and length are in the header.
test.each([
  ['ac3', [0x0b, 0x77, 0, 0, 0b1000_0000, 8 << 3], 1_536 / 32_000],
  ['eac3', [0x0b, 0x77, 0, 2, 0b0011_0000, 16 << 3], 1_536 / 48_000],
  ['eac3', [0x0b, 0x77, 0, 2, 0b0000_0000, 16 << 3, 0x0b, 0x77, 0, 2, 0b0001_0000, 16 << 3], 768 / 48_000],
])('the length of a packet of %s is that of its frames', (codec, packet, length) => {
  expect(seconds({ codec }, packet)).toBeCloseTo(length, 9)
})

test('the length of a packet of AMR is at least that of its frames of the highest rate', () => {
  expect(seconds({ id: 'samr' }, [1], new Uint8Array(320))).toBeCloseTo(0.02 + 0.2, 9)
  expect(seconds({ id: 'sawb' }, [1], new Uint8Array(610))).toBeCloseTo(0.02 + 0.2, 9)
})

test('the length of uncompressed sound is that of its bytes, and of an unknown codec at least that of 32 bits', () => {
  expect(seconds({ codec: 'pcm-s16' }, new Uint8Array(48_000 * 4))).toBe(1)
  expect(seconds({ codec: 'alaw' }, new Uint8Array(48_000 * 2))).toBe(1)
  expect(seconds({ id: 'new1' }, new Uint8Array(48_000 * 8))).toBe(1)
})
