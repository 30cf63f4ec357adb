import { NO_USAGE } from '../../usage.ts'
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../../../../test/fixtures/random.ts'
import { choppedAtRandom } from '../../../../../test/generators/chunks.ts'
import type { TapEndResult } from '../../sse/stream-tap.ts'
import { byTier } from '../../../../../test/runner/tier.ts'
import { ResponsesTap } from './tap.ts'

const USAGE = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 30, cache_write_tokens: 20 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 10 },
  total_tokens: 140,
}
const READ = {
  ...NO_USAGE,
  input: 50,
  cacheRead: 30,
  cacheWrite5m: 20,
  lifetimeIsUnknown: true,
  output: 40,
  reasoning: 10,
}
/** Maximum bytes held until an event's end. */
const MAX_HELD = 65_536

type Event = readonly [type: string, fields: object]

/** The frames of a stream, with numbers. */
function stream(...events: readonly Event[]): string {
  return events
    .map(
      ([type, fields], i) =>
        `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: i, ...fields })}\n\n`,
    )
    .join('')
}
const response = (fields: object = {}): object => ({
  response: { id: 'resp_1', model: 'gpt-5', created_at: 7, output: [], usage: null, ...fields },
})
const created = ['response.created', response()] as const
const delta = (text: string, index = 0) =>
  [
    'response.output_text.delta',
    { item_id: 'msg_1', output_index: index, content_index: 0, delta: text },
  ] as const
const done = (item: object, index = 0) =>
  ['response.output_item.done', { output_index: index, item }] as const
const end = (status: string, fields: object = {}) =>
  [`response.${status}`, response({ status, usage: USAGE, ...fields })] as const

interface Watched {
  readonly tap: ResponsesTap
  readonly forwarded: string
  readonly end: TapEndResult
  readonly mostHeld: number
}

function watch(chunks: readonly Buffer[]): Watched {
  const tap = new ResponsesTap()
  let forwarded = ''
  let held = 0
  let mostHeld = 0
  for (const piece of chunks) {
    const lent = Buffer.from(piece)
    const { forward, terminal } = tap.push(lent)
    held += lent.length - (forward?.length ?? 0)
    if (!terminal) mostHeld = Math.max(mostHeld, held)
    forwarded += forward?.toString('latin1') ?? ''
    lent.fill(0x58)
  }
  return { tap, forwarded, end: tap.end(), mostHeld }
}

describe('a native stream of a response', () => {
  const whole = stream(created, delta('Hel'), delta('lo'), delta('!'), end('completed'))

  test('a native responses stream is forwarded except for its last event, which waits until the call is charged', () => {
    const { forwarded, end: ending, tap } = watch([Buffer.from(whole)])
    expect(forwarded).toBe(whole.slice(0, whole.indexOf('event: response.completed')))
    expect(forwarded + ending.ending.toString()).toBe(whole)
    expect(ending.complete).toBe(true)
    expect(tap.text).toBe('Hello!')
    expect(tap.status).toBe('completed')
    expect(tap.responseId).toBe('resp_1')
  })

  test.each(['completed', 'incomplete'])(
    'the usage of a native responses stream is read from the event response.%s',
    (status) => {
      const { tap, end: ending } = watch([Buffer.from(stream(created, delta('Hi'), end(status)))])
      expect(tap.usage).toEqual(READ)
      expect(ending.complete).toBe(true)
    },
  )

  test('a native responses stream that failed is not complete, but its usage counts', () => {
    const { tap, end: ending } = watch([
      Buffer.from(
        stream(created, delta('Hi'), end('failed', { error: { code: 'server_error', message: 'Oops' } })),
      ),
    ])
    expect(ending.complete).toBe(false)
    expect(tap.error?.afterContent).toBe(true)
    expect(tap.usage).toEqual(READ)
    expect(tap.status).toBe('failed')
  })

  test.each([
    ['nested', { error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'Pay' } }],
    ['flat', { code: 'server_error', message: 'Oops', param: null }],
  ])('a native responses stream ends with an error, %s', (_, error) => {
    const {
      tap,
      forwarded,
      end: ending,
    } = watch([Buffer.from(stream(created, ['error', error], end('failed')))])
    expect(forwarded).toBe(stream(created))
    expect(ending.complete).toBe(false)
    expect(tap.error?.data).toContain(JSON.stringify(error).slice(1, -1))
    expect(tap.status).toBeUndefined()
  })

  test('a native responses stream without its last event is cut off, whatever came before', () => {
    const items = stream(created, delta('Hi'), done({ type: 'message', content: [{ text: 'Hi' }] }))
    expect(watch([Buffer.from(items)]).end.complete).toBe(false)
  })

  test('a native responses stream gives the same text, usage and end however the network divides it', () => {
    const facts = ({ tap, forwarded, end: ending }: Watched): object => ({
      all: forwarded + ending.ending.toString('latin1'),
      complete: ending.complete,
      usage: tap.usage,
      text: tap.text,
      bytes: tap.emittedBytes,
      frames: tap.contentFrames,
      failed: tap.failureFrame({ type: 'api_error', code: 'x', message: 'y' }).toString(),
    })
    const bytes = Buffer.from(whole)
    const once = facts(watch([bytes]))
    for (let seed = 0; seed < 50; seed++)
      expect(facts(watch(choppedAtRandom(bytes, 1 + seed, randomFrom(seed))))).toEqual(once)
  })

  test('a native responses stream that breaks off is ended by response.failed, numbered after what was forwarded', () => {
    const cut = stream(created, delta('One'), delta(' two'), delta(' three'), delta(' four'))
    const { tap } = watch([Buffer.from(cut)])
    const [, data = ''] = tap
      .failureFrame({ type: 'api_error', code: 'upstream_error', message: 'Cut' })
      .toString()
      .split('\n')
    expect(JSON.parse(data.slice('data: '.length))).toMatchObject({
      type: 'response.failed',
      sequence_number: 5,
      response: {
        id: 'resp_1',
        model: 'gpt-5',
        created_at: 7,
        status: 'failed',
        error: { code: 'server_error', message: 'Cut' },
      },
    })
  })

  test('a native responses stream counts generated text once, from deltas or from items without deltas, and names of calls', () => {
    const call = { type: 'function_call', name: 'weather', arguments: '{"a":1}', call_id: 'c' }
    const { tap } = watch([
      Buffer.from(
        stream(
          created,
          ['response.function_call_arguments.delta', { output_index: 0, delta: '{"a":1}' }],
          done(call),
          done({ ...call, arguments: '{"b":2}' }, 1),
          done({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hmm' }] }, 2),
          end('completed'),
        ),
      ),
    ])
    expect(tap.text.split('\n').map((line) => line.trim())).toEqual([
      '{"a":1}weather',
      'weather{"b":2}',
      'Hmm',
    ])
  })

  test("a native responses stream charges searches by the response's count, otherwise by its items", () => {
    const search = { type: 'web_search_call', action: { type: 'search', query: 'q' } }
    const page = { type: 'web_search_call', action: { type: 'open_page', url: 'u' } }
    const searches = (...events: readonly Event[]): number | undefined =>
      watch([Buffer.from(stream(created, ...events))]).tap.usage?.webSearches
    expect(searches(done(search), done(page, 1), end('completed'))).toBe(1)
    expect(searches(end('completed', { output: [search, search, page] }))).toBe(2)
    expect(
      searches(done(search), end('completed', { tool_usage: { web_search: { num_requests: 3 } } })),
    ).toBe(3)
  })
})

describe('an event of any size', () => {
  test.each([
    [300_000, 1_000],
    [byTier(1_000_000, 6_000_000), 16_384],
    [byTier(6_000_000, 40_000_000), 65_536],
  ])(
    'a responses stream event of %i bytes that arrives in pieces of %i bytes is forwarded at once, and its content is read',
    (bytes, size) => {
      const output = [{ type: 'image_generation_call', result: 'A'.repeat(bytes) }]
      const whole = Buffer.from(
        stream(
          created,
          done(output[0] ?? {}),
          end('completed', { output, instructions: 'word '.repeat(9_000) }),
        ),
      )
      const chunks = Array.from({ length: Math.ceil(whole.length / size) }, (_, i) =>
        whole.subarray(i * size, (i + 1) * size),
      )
      const { tap, forwarded, end: ending, mostHeld } = watch(chunks)
      expect(forwarded + ending.ending.toString('latin1') === whole.toString('latin1')).toBe(true)
      expect(mostHeld).toBeLessThanOrEqual(MAX_HELD + size)
      expect(tap.usage).toEqual({ ...READ, tools: [{ kind: 'image_generation', count: 1 }] })
      expect(ending.complete).toBe(true)
    },
  )

  // A provider's WebSocket gives each event as a whole.
  test.each(
    [64_000, 66_000, 100_000, 140_000].flatMap((bytes) =>
      [16_384, 65_536, Number.POSITIVE_INFINITY].map((size) => [bytes, size]),
    ),
  )(
    'the last event of a responses stream, with a text of %i bytes, reaches the client whole if it arrives in pieces of %d bytes',
    (bytes, size) => {
      const output = [
        { type: 'message', content: [{ type: 'output_text', text: 'word '.repeat(bytes / 5) }] },
      ]
      const whole = Buffer.from(`${stream(created, end('completed', { output }))}: bye\n\n`)
      const chunks: Buffer[] = []
      for (let at = 0; at < whole.length; at += size) chunks.push(whole.subarray(at, at + size))
      const { tap, forwarded, end: ending } = watch(chunks)
      expect(forwarded + ending.ending.toString('latin1') === whole.toString('latin1')).toBe(true)
      expect(tap.usage).toEqual(READ)
      expect(ending.complete).toBe(true)
    },
  )
})

test('the item of a shell call may have very many commands', () => {
  const item = { type: 'shell_call', action: { commands: Array(200_000).fill('a') } }
  const event = { type: 'response.output_item.done', output_index: 0, item }
  const tap = new ResponsesTap()
  tap.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  expect(tap.emittedBytes).toBe(200_000)
})
