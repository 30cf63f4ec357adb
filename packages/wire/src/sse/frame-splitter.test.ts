import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cpuMs, growthOf, LINEAR_GROWTH } from '../../../../test/fixtures/pace.ts'
import { WireError } from '../wire-error.ts'
import { frameData, eventNameOfFrame, FrameSplitter } from './frame-splitter.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

/**
 * Oracle: finds blank lines byte by byte, as the event stream format defines them. A CR at the end waits for
 * a possible LF.
 */
function referenceEnds(bytes: Buffer): number[] {
  const ends: number[] = []
  let lineIsEmpty = true
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte !== 10 && byte !== 13) {
      lineIsEmpty = false
      continue
    }
    if (byte === 13 && bytes[i + 1] === 10) i++
    if (lineIsEmpty) ends.push(i + 1)
    lineIsEmpty = true
  }
  return ends
}

/** Oracle: reads lines, fields and data as the format defines them. */
function referenceData(frame: string): string | undefined {
  let buffer: string | undefined
  let rest = frame
  while (rest !== '') {
    const end = rest.search(/[\r\n]/)
    const line = end < 0 ? rest : rest.slice(0, end)
    rest = end < 0 ? '' : rest.slice(rest.startsWith('\r\n', end) ? end + 2 : end + 1)
    if (line.startsWith(':')) continue
    const [field, ...values] = line.split(':')
    if (field !== 'data') continue
    const value = values.join(':')
    buffer = `${buffer ?? ''}${value.startsWith(' ') ? value.slice(1) : value}\n`
  }
  return buffer?.slice(0, -1)
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((n) => n % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length))
}

/** Returns the frames that this chunk completes. */
function push(splitter: FrameSplitter, chunk: Buffer): Buffer[] {
  const bytes = splitter.take(chunk)
  if (!bytes) return []
  const frames: Buffer[] = []
  let at = 0
  for (let end = splitter.next(0); end > 0; end = splitter.next(at)) {
    frames.push(bytes.subarray(at, end))
    at = end
  }
  splitter.markRead(at)
  return frames
}

function millisecondsToLookAt(bytes: Buffer): number {
  const from = cpuMs()
  let ends = 0
  for (let i = 0; i < bytes.length; i++) if (bytes[i] === 10) ends += 1
  const taken = cpuMs() - from
  expect(ends).toBe(2)
  return taken
}

function framesOf(chunks: readonly Buffer[], maxEventBytes?: number): { frames: string[]; rest: string } {
  const splitter = new FrameSplitter(maxEventBytes)
  const frames = chunks.flatMap((chunk) => {
    // The splitter must copy the bytes it holds, because the network reuses its buffer.
    const lent = Buffer.from(chunk)
    const whole = push(splitter, lent).map((frame) => frame.toString('latin1'))
    lent.fill(0x58)
    return whole
  })
  const { bytes, isWhole } = splitter.end()
  const last = bytes.toString('latin1')
  return isWhole ? { frames: [...frames, last], rest: '' } : { frames, rest: last }
}

const wire = fc
  .array(fc.constantFrom('\n', '\r', '\r\n', '\n\n', 'a', 'data: x', ':', 'event: y', '\ufeff', 'é', ' '), {
    maxLength: 30,
  })
  .map((tokens) => Buffer.from(tokens.join('')))

describe('frames', () => {
  test('any event stream, divided anywhere, is split into frames at its blank lines', () => {
    fc.assert(
      fc.property(wire, fc.array(fc.nat(), { maxLength: 12 }), (bytes, cuts) => {
        const ends = referenceEnds(bytes)
        const { frames, rest } = framesOf(cut(bytes, cuts))
        expect(frames).toEqual(ends.map((end, i) => bytes.toString('latin1', ends[i - 1] ?? 0, end)))
        expect(rest).toBe(bytes.toString('latin1', ends.at(-1) ?? 0))
      }),
      { numRuns: lawRuns(5000) },
    )
  })

  test('frames of more than a few kilobytes end at blank lines, however the chunks are divided', () => {
    const long = 'x'.repeat(5_000)
    for (const end of ['\n\n', '\r\r', '\r\n\r\n', '\n\r\n', '\r\n\n', '\r\n\r']) {
      const bytes = Buffer.from(`data: ${long}${end}data: ${long}`)
      for (let at = 1; at < bytes.length; at++) {
        // Cuts at each byte around the blank line and at some others.
        if ((at < 5_000 || at > 5_020) && at % 97 > 0) continue
        expect(framesOf([bytes.subarray(0, at), bytes.subarray(at)])).toEqual({
          frames: [`data: ${long}${end}`],
          rest: `data: ${long}`,
        })
      }
    }
  })

  test('a stream that arrives byte by byte gives the same frames as in one piece', () => {
    const bytes = Buffer.from('data: a\r\n\r\n: c\n\ndata: b\r\rdata: c\n\r\n\n\ndata: d')
    expect(framesOf([...bytes].map((byte) => Buffer.from([byte])))).toEqual(framesOf([bytes]))
    expect(framesOf([bytes])).toEqual({
      frames: ['data: a\r\n\r\n', ': c\n\n', 'data: b\r\r', 'data: c\n\r\n', '\n', '\n'],
      rest: 'data: d',
    })
  })

  test('a stream event above the maximum size is an upstream error, however it arrives', () => {
    const event = Buffer.from(`data: ${'x'.repeat(200)}\n\n`)
    for (const size of [1, 7, 64, 1000]) {
      const chunks = Array.from({ length: Math.ceil(event.length / size) }, (_, i) =>
        event.subarray(i * size, (i + 1) * size),
      )
      expect(framesOf(chunks, 208).frames).toHaveLength(1)
      expect(() => framesOf(chunks, 207)).toThrow(WireError)
    }
    // Its end is not awaited.
    expect(() => framesOf([event.subarray(0, 60), event.subarray(60, 120)], 100)).toThrow(WireError)
  })

  test('a stream line of ten megabytes takes at most the time to read each byte eight times, whole or in pieces', () => {
    const line = Buffer.from(`data: ${'x'.repeat(10_000_000)}\n\n`)
    const pieces = Array.from({ length: 160 }, (_, i) => line.subarray(i * 65_536, (i + 1) * 65_536))
    for (const chunks of [[line], pieces]) {
      let fastest = Number.POSITIVE_INFINITY
      let looking = Number.POSITIVE_INFINITY
      for (let attempt = 0; attempt < 10 || (attempt < 40 && fastest >= 8 * looking); attempt++) {
        const splitter = new FrameSplitter(20_000_000)
        const from = cpuMs()
        let frames = 0
        for (const chunk of chunks) frames += push(splitter, chunk).length
        fastest = Math.min(fastest, cpuMs() - from)
        expect(frames).toBe(1)
        looking = Math.min(looking, millisecondsToLookAt(line))
      }
      expect(fastest).toBeLessThan(8 * looking)
    }
  })
})

test.each(['\n\n', '\r\r', '\r\n\r\n'])(
  'splitting a chunk of many frames takes time in proportion to its bytes, whatever line ends separate them: %j',
  async (end) => {
    const chunk = (count: number): Buffer => Buffer.from(`data: x${end}`.repeat(count))
    expect(push(new FrameSplitter(), chunk(1_000)).length).toBeGreaterThanOrEqual(999)
    const growth = await growthOf(8_000, chunk, (bytes) => push(new FrameSplitter(), bytes))
    expect(growth).toBeLessThan(LINEAR_GROWTH)
  },
)

describe('data', () => {
  test('the data of a stream frame follows the rules of server-sent events', () => {
    expect(frameData('data: a\n\n')).toBe('a')
    expect(frameData('data:a\r\n\r\n')).toBe('a')
    expect(frameData('data:  a\n\n')).toBe(' a')
    expect(frameData('data: a\ndata\ndata: b\n\n')).toBe('a\n\nb')
    expect(frameData(': ping\n\n')).toBeUndefined()
    expect(frameData('event: error\ndata: {}\n\n')).toBe('{}')
    expect(frameData(' data: a\n\n')).toBeUndefined()
    expect(frameData('data: a')).toBe('a')
    expect(eventNameOfFrame('event: error\ndata: {}\n\n')).toBe('error')
    expect(eventNameOfFrame('data: event: x\n\n')).toBeUndefined()
  })

  test('the data of a stream frame agrees with a parser that reads server-sent events line by line', () => {
    const line = fc.constantFrom(
      'data: a',
      'data:b',
      'data',
      'data:',
      'data:  c',
      'datax: d',
      ': data: e',
      'event: f',
      '',
      'id',
      'data: é:',
    )
    const end = fc.constantFrom('\n', '\r', '\r\n')
    fc.assert(
      fc.property(fc.array(fc.tuple(line, end), { maxLength: 6 }), (lines) => {
        const frame = lines.flat().join('')
        expect(frameData(frame)).toBe(referenceData(frame))
      }),
      { numRuns: lawRuns(3000) },
    )
  })
})
