import { afterAll, expect, test } from 'vitest'
import { waveFile } from '../../../test/fixtures/form.ts'
import { aacFile, flacFile, mp3File, opusFile } from '../../../test/fixtures/recording.ts'
import { RecordingLengths } from './recording-length.ts'

const WATCH = { failed() {}, started() {} }
const lengths = new RecordingLengths(WATCH)
afterAll(() => lengths.close())

const KEY = 1

const measured = (bytes: Buffer, key = KEY, by = lengths): ReturnType<RecordingLengths['measure']> =>
  by.measure(key, bytes, 0, bytes.length)

/**
 * MP3 file of silent frames: 128 kbit/s, 44.1 kHz. `hasHeader`: its first frame states that the file has one
 * frame.
 */
function mp3(frames: number, hasHeader = false): Buffer {
  const frame = Buffer.alloc(417)
  frame.set([0xff, 0xfb, 0x90, 0xc0])
  const claim = Buffer.from(frame)
  claim.write('Xing', 21)
  claim.writeUInt32BE(1, 25)
  claim.writeUInt32BE(1, 29)
  return Buffer.concat([...(hasHeader ? [claim] : []), ...Array.from({ length: frames }, () => frame)])
}

test('the length of a WAV recording is that of its sound data, whatever its header claims', async () => {
  for (const claimed of [undefined, 36_000 * 32_000, 0xffff_ffff, 100, 0])
    expect(await measured(waveFile(10, claimed))).toEqual({ seconds: 10, isEstimate: false })
})

test('the length of an MP3 recording is that of its frames, whatever its header claims', async () => {
  for (const hasHeader of [false, true]) {
    const { seconds, isEstimate } = await measured(mp3(1_000, hasHeader))
    expect(isEstimate).toBe(false)
    expect(seconds).toBeCloseTo((1_000 * 1_152) / 44_100, 0)
  }
})

test('the length of a WAV recording with a byte for each sample is that of its sound data, too', async () => {
  const file = waveFile(10, 100)
  // µ-law
  file.writeUInt16LE(7, 20)
  file.writeUInt16LE(8, 34)
  expect((await measured(file)).seconds).toBeCloseTo(20, 1)
})

test.each([
  ['AAC in MP4', (stated?: number) => aacFile(500, stated), 32],
  ['MP3 in MP4', (stated?: number) => mp3File(1_000, stated), (1_000 * 1_152) / 44_100],
  ['Opus in WebM', (stated?: number) => opusFile('webm', 1_000, 40, stated), 20],
])(
  'the length of a recording is that of its packets, also if its container states other times: %s',
  async (_, file, length) => {
    const [honest, forged] = [await measured(await file()), await measured(await file(1 / 16_000))]
    for (const { seconds, isEstimate } of [honest, forged]) {
      expect(isEstimate).toBe(false)
      expect(Math.abs(seconds - length)).toBeLessThan(0.03)
    }
  },
)

test('the length of a recording is what its container states if its sound is longer by a delay of the encoder alone', async () => {
  expect((await measured(await aacFile(500, 0.0639))).seconds).toBeCloseTo(31.95, 2)
})

test('the length of a recording is what its container states if that is longer, as packets of silence may be missing', async () => {
  // The container states no length for the last packet.
  expect((await measured(await opusFile('webm', 101, 400, 0.4))).seconds).toBeCloseTo(40, 1)
})

test.each([
  ['neither', [0, 0]],
  ['a minimum of many frames', [10_000, 0]],
  ['a maximum below a frame', [0, 1]],
] as const)(
  'the length of a FLAC recording is that of its frames, also if its header states other sizes: %s',
  async (_, sizes) => {
    const sound = Buffer.alloc(120_000)
    const { seconds, isEstimate } = await measured(Buffer.concat([flacFile(200, sizes), sound]))
    expect(isEstimate).toBe(false)
    expect(seconds).toBeCloseTo((200 * 4_096) / 8_000, 1)
  },
)

// Silence, in 28 and about 170 bytes per second.
test.each([
  ['FLAC', () => Promise.resolve(flacFile(2_000)), (2_000 * 4_096) / 8_000],
  ['Opus in Ogg', () => opusFile('ogg', 2_000, 2), 40],
  ['Opus in WebM', () => opusFile('webm', 101, 2, 0.4), 40],
])('the length of a recording that needs few bytes is that of its frames: %s', async (_, file, length) => {
  const { seconds, isEstimate } = await measured(await file())
  expect(isEstimate).toBe(false)
  expect(Math.abs(seconds - length)).toBeLessThan(0.03)
})

test('the length of an unreadable audio recording is estimated by its size, and an empty one has no length', async () => {
  expect(await measured(Buffer.alloc(40_000, 7))).toEqual({ seconds: 10, isEstimate: true })
  expect(await measured(Buffer.alloc(0))).toEqual({ seconds: 0, isEstimate: true })
})

test('the length of audio recordings is estimated by their size at once if too many wait to be measured', async () => {
  const recording = waveFile(1)
  const all = await Promise.all(Array.from({ length: 1_017 }, () => measured(recording)))
  expect(all.filter(({ isEstimate }) => isEstimate)).toHaveLength(16)
  expect(all.filter(({ seconds }) => seconds === 1)).toHaveLength(1_001)
})

/** AAC with packets of only two bytes, so that even a small file takes long to read. */
function tinyPackets(count: number): Buffer {
  const packet = Buffer.from([0xff, 0xf1, 0x50, 0x80, 0x01, 0x3f, 0xfc, 0, 0])
  return Buffer.alloc(count * packet.length, packet)
}

test('a key that sends many audio recordings delays the measuring for another key by one recording only', async () => {
  const order: string[] = []
  const read = async (name: string, key: number): Promise<void> => {
    await measured(waveFile(1), key)
    order.push(name)
  }
  const many = ['1', '2', '3', '4'].map((name) => read(name, 1))
  await Promise.all([...many, read('other', 2)])
  expect(order.slice(0, 2).toSorted()).toEqual(['1', 'other'])
})

test('an audio recording that takes too long to measure is estimated by its size, and the next one is measured', async () => {
  const impatient = new RecordingLengths(WATCH, 200)
  const poisoned = tinyPackets(700_000)
  expect(await measured(poisoned, KEY, impatient)).toMatchObject({ isEstimate: true })
  expect(await measured(waveFile(2), KEY, impatient)).toEqual({ seconds: 2, isEstimate: false })
  await impatient.close()
})

test('audio recordings that are being measured when the gateway closes are estimated by their size', async () => {
  const closing = new RecordingLengths(WATCH)
  const recording = waveFile(100)
  const under = measured(recording, KEY, closing)
  await closing.close()
  expect(await under).toMatchObject({ isEstimate: true })
})
