import { describe, expect, test } from 'vitest'
import type { TapEndResult } from '../../sse/stream-tap.ts'
import { byTier } from '../../../../../test/runner/tier.ts'
import { ChatTap } from './tap.ts'

/** Maximum bytes that are held until the end of an event. */
const MAX_HELD = 65_536
const DONE = 'data: [DONE]\n\n'
const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }

const chunk = (delta: object, parts: object = {}, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason: finish }], ...parts })}\n\n`
/** An event slightly larger than this many bytes: an image in the form that image models send. */
const picture = (bytes: number, parts: object = {}, finish: string | null = null): string =>
  chunk(
    { content: 'Look.', images: [{ image_url: { url: `data:image/png;base64,${'A'.repeat(bytes)}` } }] },
    parts,
    finish,
  )

interface Watched {
  readonly tap: ChatTap
  readonly forwarded: Buffer
  readonly end: TapEndResult
  /** Maximum bytes that were received and not yet forwarded. */
  readonly mostHeld: number
}

function watch(stream: string, size: number, swallowUsage = false): Watched {
  const tap = new ChatTap({ swallowUsage })
  const bytes = Buffer.from(stream)
  const forwarded: Buffer[] = []
  let held = 0
  let mostHeld = 0
  for (let at = 0; at < bytes.length; at += size) {
    const lent = Buffer.from(bytes.subarray(at, at + size))
    const { forward, terminal } = tap.push(lent)
    held += lent.length - (forward?.length ?? 0)
    if (!terminal) mostHeld = Math.max(mostHeld, held)
    if (forward) forwarded.push(Buffer.from(forward))
    lent.fill(0x58)
  }
  return { tap, forwarded: Buffer.concat(forwarded), end: tap.end(), mostHeld }
}

describe('an event of any size', () => {
  test.each([
    [byTier(1_000_000, 6_000_000), 1_000],
    [byTier(1_000_000, 6_000_000), 16_384],
    [byTier(1_000_000, 6_000_000), 65_536],
    [byTier(1_000_000, 6_000_000), 65_537],
    [byTier(6_000_000, 40_000_000), 65_536],
    [byTier(6_000_000, 40_000_000), 1_000_000],
  ])(
    'an event of %i bytes, cut by %i, is forwarded byte for byte while at most 64 KiB of it are held',
    (bytes, size) => {
      const events =
        chunk({ role: 'assistant' }) +
        picture(bytes, { usage: USAGE }, 'stop') +
        chunk({ content: 'later' }) +
        picture(bytes / 4)
      const { tap, forwarded, end, mostHeld } = watch(events + DONE, size)
      expect(forwarded.equals(Buffer.from(events))).toBe(true)
      expect(end).toMatchObject({ ending: Buffer.from(DONE), cutBytes: 0, complete: true })
      expect(mostHeld).toBeLessThanOrEqual(MAX_HELD + size)
      expect(tap).toMatchObject({
        usage: { input: 100, output: 20 },
        sawFinish: true,
        done: true,
        text: 'Look.laterLook.',
      })
    },
  )

  test('a large stream event that arrives byte by byte is forwarded unchanged', () => {
    const events = picture(200_000, { usage: USAGE }, 'stop')
    const { tap, forwarded, end } = watch(events + DONE, 1)
    expect(forwarded.equals(Buffer.from(events))).toBe(true)
    expect(end.complete).toBe(true)
    expect(tap).toMatchObject({ usage: { input: 100, output: 20 }, text: 'Look.' })
  })

  test('a large stream event with any kind of line ends is forwarded unchanged', () => {
    for (const lineEnd of ['\r\n', '\r']) {
      const events = (picture(300_000, { usage: USAGE }, 'stop') + chunk({ content: 'b' })).replaceAll(
        '\n',
        lineEnd,
      )
      for (const size of [999, 65_536, 299_000]) {
        const { tap, forwarded, end } = watch(events + DONE, size)
        expect(forwarded.equals(Buffer.from(events))).toBe(true)
        expect(tap).toMatchObject({ usage: { input: 100, output: 20 }, text: 'Look.b' })
        expect(end).toMatchObject({ complete: true })
      }
    }
  })

  test('the usage chunk that only the gateway requested is withheld from the client also if it follows a large stream event', () => {
    const usage = `data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\n`
    const { forwarded, tap } = watch(picture(300_000, {}, 'stop') + usage + DONE, 50_000, true)
    expect(forwarded.toString()).toBe(picture(300_000, {}, 'stop'))
    expect(tap.usage).toMatchObject({ input: 100, output: 20 })
  })

  test('a large stream event that is cut off is recognized as incomplete', () => {
    const { end, tap } = watch(chunk({}, {}, 'stop') + picture(300_000).slice(0, -2), 65_536)
    expect(tap.isMidEvent).toBe(true)
    expect(end.complete).toBe(false)
    expect(watch(picture(300_000), 65_536).tap.isMidEvent).toBe(false)
  })

  test('a large event with an image counts as delivered content, even without text', () => {
    const images = [{ url: 'A'.repeat(300_000) }]
    expect(watch(chunk({ images }).slice(0, 200_000), 65_536).tap.contentFrames).toBe(1)
  })

  test('a text of 200 KB in one stream event is counted in full', () => {
    const text = 'word "and" word\n'.repeat(12_500)
    const { tap } = watch(chunk({ content: text }, {}, 'stop') + DONE, 65_536)
    expect(tap.text).toBe(text)
    expect(tap.emittedBytes).toBe(text.length)
  })
})

describe('an error in a large event', () => {
  test('an error at the beginning of a large event is held back as a whole', () => {
    const log = 'key '.repeat(100_000)
    for (const error of [
      `data: ${JSON.stringify({ error: { message: 'no', log } })}\n\n`,
      `event: error\ndata: ${JSON.stringify({ log })}\n\n`,
      `id: 7\r\nevent:error\r\ndata: ${JSON.stringify({ log })}\r\n\r\n`,
    ]) {
      const { tap, forwarded } = watch(chunk({ content: 'a' }) + error + DONE, 65_536)
      expect(forwarded.toString()).toBe(chunk({ content: 'a' }))
      expect(tap.errorFrame?.toString()).toBe(error)
    }
  })

  test('an error after an image in a large event ends the stream', () => {
    const event = picture(300_000, { error: { message: 'no' } })
    const { tap, forwarded, end } = watch(event + chunk({ content: 'late' }) + DONE, 65_536)
    expect(tap.error).toMatchObject({ afterContent: true })
    expect(end.complete).toBe(false)
    expect(forwarded.toString() + String(tap.errorFrame)).toBe(event)
  })
})
