import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '../../usage.ts'
import type { TapEndResult } from '../../sse/stream-tap.ts'
import { MessagesTap } from './tap.ts'
import { readMessagesUsage } from '../usage.ts'
import { byTier, lawRuns } from '../../../../../test/runner/tier.ts'

const frame = (data: { type: string }, padding = ''): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data).slice(0, -1)}${padding}}\n\n`
const start = (usage: object = { input_tokens: 25, output_tokens: 1 }): string =>
  frame({ type: 'message_start', message: { id: 'msg_1', content: [], usage } } as never)
const begin = (index: number, block: object): string =>
  frame({ type: 'content_block_start', index, content_block: block } as never)
const delta = (index: number, piece: object, padding = ''): string =>
  frame({ type: 'content_block_delta', index, delta: piece } as never, padding)
const text = (value: string, index = 0, padding = ''): string =>
  delta(index, { type: 'text_delta', text: value }, padding)
const finish = (usage: object = { output_tokens: 9 }): string =>
  frame({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage } as never)
const PING = frame({ type: 'ping' })
const STOP = frame({ type: 'message_stop' })
const ERROR = frame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } as never)

interface Watched {
  readonly tap: MessagesTap
  readonly forwarded: string
  readonly end: TapEndResult
}

function watch(chunks: readonly Buffer[]): Watched {
  const tap = new MessagesTap()
  const forwarded: Buffer[] = []
  for (const piece of chunks) {
    const lent = Buffer.from(piece)
    const { forward } = tap.push(lent)
    if (forward) forwarded.push(Buffer.from(forward))
    lent.fill(0x58)
  }
  return { tap, forwarded: Buffer.concat(forwarded).toString('latin1'), end: tap.end() }
}

const facts = ({ tap, forwarded, end }: Watched): object => ({
  forwarded,
  ending: end.ending.toString('latin1'),
  cutBytes: end.cutBytes,
  complete: end.complete,
  usage: tap.usage,
  error: tap.error,
  emittedBytes: tap.emittedBytes,
  contentFrames: tap.contentFrames,
  text: tap.text,
})

const by = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))

interface Piece {
  readonly text?: string
  readonly thinking?: string
  readonly partial_json?: string
  readonly content?: string
}

/** Oracle: the text of the deltas, read frame by frame with JSON.parse. */
function deltasOf(stream: string): string[] {
  return [...stream.matchAll(/^data: ([^\n]*content_block_delta[^\n]*)$/gm)].flatMap(([, data = '']) => {
    const { delta: piece } = JSON.parse(data) as { delta: Piece }
    return piece.text ?? piece.thinking ?? piece.partial_json ?? piece.content ?? []
  })
}

describe('a native messages stream', () => {
  const WHOLE =
    start() + begin(0, { type: 'text', text: '' }) + PING + text('Hel') + text('lo') + finish() + STOP

  test('a native messages stream is forwarded unchanged, except message_stop and what follows it', () => {
    const { forwarded, end } = watch([Buffer.from(`${WHOLE}: late\n\n`)])
    expect(forwarded + end.ending.toString()).toBe(`${WHOLE}: late\n\n`)
    expect(end).toMatchObject({ ending: Buffer.from(`${STOP}: late\n\n`), complete: true, cutBytes: 0 })
  })

  test('a received chunk of a messages stream is forwarded without a copy where all of it can be forwarded', () => {
    const chunk = Buffer.from(start() + PING)
    expect(new MessagesTap().push(chunk).forward).toBe(chunk)
  })

  test('a native messages stream has its usage from message_start on, and finally from message_delta', () => {
    const tap = new MessagesTap()
    tap.push(Buffer.from(start()))
    expect(tap.usage).toMatchObject({ input: 25, output: 1 })
    tap.push(Buffer.from(finish({ input_tokens: 30, output_tokens: 9 })))
    expect(tap.usage).toMatchObject({ input: 30, output: 9 })
  })

  test('a messages stream that begins the same message twice counts neither its text nor its usage again', () => {
    const message = { id: 'msg_1', content: [{ type: 'text', text: 'all' }], usage: { output_tokens: 1 } }
    const again = frame({ type: 'message_start', message } as never)
    const { tap, forwarded } = watch([
      Buffer.from(again + finish({ input_tokens: 3, output_tokens: 9 }) + again),
    ])
    expect(forwarded).toBe(again + finish({ input_tokens: 3, output_tokens: 9 }) + again)
    expect(tap.text).toBe('all')
    expect(tap.usage).toMatchObject({ input: 3, output: 9 })
  })

  test('if a messages stream begins its message twice, its usage has the prompt tokens of the second beginning', () => {
    const none = start({ input_tokens: 0, output_tokens: 0 })
    const told = start({ input_tokens: 1000, output_tokens: 1 })
    for (const stream of [
      none + told + finish({ output_tokens: 5 }),
      none + finish({ output_tokens: 5 }) + told,
    ])
      expect(watch([Buffer.from(stream)]).tap.usage).toMatchObject({ input: 1000, output: 5 })
  })

  test('a messages stream that ends without reporting its output keeps the reported prompt tokens', () => {
    const cached = { input_tokens: 100, cache_read_input_tokens: 900, output_tokens: 1 }
    for (const usage of [null, {}, { output_tokens: null }, { output_tokens: -3 }]) {
      const { tap } = watch([Buffer.from(start(cached) + text('a') + finish(usage as never) + STOP)])
      expect(tap.usage).toEqual({ ...NO_USAGE, input: 100, cacheRead: 900, outputIsUnknown: true })
    }
    const nothing = start({ input_tokens: 0, output_tokens: 0 })
    expect(watch([Buffer.from(nothing + finish({}) + STOP)]).tap.usage).toBeUndefined()
  })

  test('a native messages stream counts text, thinking and the input of tools, but not signatures and results', () => {
    const stream =
      start() +
      begin(0, { type: 'thinking', thinking: '', signature: '' }) +
      delta(0, { type: 'thinking_delta', thinking: 'hm' }) +
      delta(0, { type: 'signature_delta', signature: 'c2ln' }) +
      begin(1, { type: 'tool_use', id: 'a', name: 'fn', input: {} }) +
      delta(1, { type: 'input_json_delta', partial_json: '{"a":' }) +
      delta(1, { type: 'input_json_delta', partial_json: '"ü"}' }) +
      begin(2, { type: 'web_search_tool_result', tool_use_id: 'x', content: [{ title: 'found' }] }) +
      begin(3, { type: 'text', text: '' }) +
      text('done', 3) +
      delta(3, { type: 'citations_delta', citation: { cited_text: 'said elsewhere' } }) +
      finish() +
      STOP
    const { tap } = watch([Buffer.from(stream)])
    expect(tap.text).toBe('hm\nfn{"a":"ü"}\ndone')
    expect(tap.emittedBytes).toBe(Buffer.byteLength('hmfn{"a":"ü"}done'))
    expect(tap.contentFrames).toBe(5)
  })

  test('a messages stream whose first event has the complete message is complete with message_stop', () => {
    const message = {
      content: [{ type: 'text', text: 'all' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1, output_tokens: 2 },
    }
    const { tap, end } = watch([Buffer.from(frame({ type: 'message_start', message } as never) + STOP)])
    expect(tap.text).toBe('all')
    expect(end.complete).toBe(true)
    expect(tap.usage).toMatchObject({ output: 2 })
  })

  test('a messages stream without message_stop is complete only if it gave a stop reason', () => {
    const body = start() + text('a')
    expect(watch([Buffer.from(body)]).end).toMatchObject({ complete: false, ending: Buffer.alloc(0) })
    expect(watch([Buffer.from(body + finish())]).end).toMatchObject({
      complete: true,
      ending: Buffer.alloc(0),
    })
  })

  test('a messages event that was cut off is not forwarded, and message_stop is accepted without its blank line', () => {
    const { forwarded, end } = watch([Buffer.from(`${start()}event: ping\ndata: {"ty`)])
    expect(forwarded).toBe(start())
    expect(end).toMatchObject({ cutBytes: 'event: ping\ndata: {"ty'.length, complete: false })
    const last = STOP.trimEnd()
    expect(watch([Buffer.from(start() + last)]).end).toMatchObject({
      complete: true,
      ending: Buffer.from(last),
    })
  })

  test('an error event ends a native messages stream, before or after content', () => {
    const first = watch([Buffer.from(start() + ERROR + STOP)])
    expect(first.forwarded).toBe(start())
    expect(first.tap.error).toMatchObject({ afterContent: false })
    expect(JSON.parse(first.tap.error?.data ?? '')).toMatchObject({ error: { type: 'overloaded_error' } })
    expect(first.end).toMatchObject({ complete: false, ending: Buffer.from(ERROR + STOP) })
    expect(watch([Buffer.from(start() + text('a') + ERROR)]).tap.error).toMatchObject({ afterContent: true })
    expect(watch([Buffer.from('event: error\ndata: busy\n\n')]).tap.error).toMatchObject({ data: 'busy' })
  })

  test.each([
    ['of a type of its own', 'event: error\ndata: {"type":"overloaded_error","message":"busy"}\n\n'],
    ['of a type that is no error elsewhere', 'event: error\ndata: {"type":"ping","message":"busy"}\n\n'],
    ['named after its data', 'data: {"type":"overloaded_error","message":"busy"}\nevent: error\n\n'],
    ['without a type or a name', 'data: {"error":{"message":"busy"}}\n\n'],
    ['that is a text', 'data: {"error":"busy"}\n\n'],
  ])('an error %s ends a native messages stream', (_kind, error) => {
    const { tap, forwarded, end } = watch([Buffer.from(start() + text('a') + error + STOP)])
    expect(forwarded).toBe(start() + text('a'))
    expect(tap.error).toMatchObject({ afterContent: true })
    expect(tap.errorFrame?.toString()).toBe(error)
    expect(end.complete).toBe(false)
  })

  test('unknown events of a messages stream are forwarded', () => {
    const odd = 'event: odd\ndata: {"type":"odd"}\n\ndata: 5\n\n: hi\n\nevent: ping\n\n'
    expect(watch([Buffer.from(odd)]).forwarded).toBe(odd)
  })
})

describe('any messages stream', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 12 }),
    fc.constantFrom('\\', '"', '\n', '}', '', 'c7a1f0e2-sentinel', '{"a":"b"}'),
  )
  const padding = fc.constantFrom('', '', '   ', '            ')
  const event = fc.oneof(
    fc.tuple(piece, fc.nat(2), padding).map(([value, index, pad]) => text(value, index, pad)),
    fc
      .tuple(piece, padding)
      .map(([value, pad]) => delta(0, { type: 'thinking_delta', thinking: value }, pad)),
    fc
      .tuple(piece, padding)
      .map(([value, pad]) => delta(1, { type: 'input_json_delta', partial_json: value }, pad)),
    fc.nat(2).map((index) => begin(index, { type: 'text', text: '' })),
    fc.constantFrom(PING, finish(), start(), 'data: {\n\n', ': c\n\n'),
  )
  const stream = fc
    .tuple(fc.array(event, { maxLength: 40 }), fc.constantFrom(STOP, ERROR, ''))
    .map(([events, end]) => events.join('') + end)

  test('each byte of a messages stream is forwarded, held back or cut off, and the text counted as sent is that of its deltas', () => {
    fc.assert(
      fc.property(stream, fc.nat(20), (whole, cut) => {
        const bytes = Buffer.from(whole)
        const came = bytes.subarray(0, Math.max(0, bytes.length - cut))
        const { forwarded, end } = watch([came])
        expect(forwarded.length + end.ending.length + end.cutBytes).toBe(came.length)
        const told = Buffer.concat([Buffer.from(forwarded, 'latin1'), end.ending])
        expect(told).toEqual(came.subarray(0, told.length))
        expect(watch([bytes]).tap.emittedBytes).toBe(Buffer.byteLength(deltasOf(whole).join('')))
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('a messages stream gives the same text, usage and end however the network divides it', () => {
    fc.assert(
      fc.property(stream, fc.integer({ min: 1, max: 300 }), (whole, size) => {
        const bytes = Buffer.from(whole)
        expect(facts(watch(by(bytes, size)))).toEqual(facts(watch([bytes])))
      }),
      { numRuns: lawRuns(300) },
    )
  })
})

describe('recorded traffic', () => {
  const folder = process.env['RECORDINGS']
  const names = folder ? readdirSync(join(folder, 'messages')).filter((name) => name.endsWith('.sse')) : []

  test(`${names.length} recorded messages streams are forwarded byte for byte and charged as reported, however divided`, () => {
    for (const name of names) {
      const bytes = readFileSync(join(folder ?? '', 'messages', name))
      const whole = watch([bytes])
      expect(whole.forwarded + whole.end.ending.toString('latin1'), name).toBe(bytes.toString('latin1'))
      expect(whole.end, name).toMatchObject({ complete: true, cutBytes: 0 })
      expect(whole.end.ending.toString(), name).toMatch(/^event: message_stop\n[^\n]*\n\n$/)
      const reported = [...bytes.toString().matchAll(/^data: ([^\n]*"message_(?:start|delta)"[^\n]*)$/gm)]
        .map(([, data = '']) => JSON.parse(data) as { message?: { usage: object }; usage?: object })
        .map(({ message, usage }) => ({ ...(message?.usage ?? usage) }))
      // Tools are also counted from the blocks.
      const { tools } = whole.tap.usage ?? {}
      const usage = readMessagesUsage(Object.assign({}, ...reported))
      expect(whole.tap.usage, name).toEqual(usage && { ...usage, tools })
      for (const size of byTier([1, 100], [1, 2, 3, 100, 1000, 4096]))
        expect(facts(watch(by(bytes, size))), name).toEqual(facts(whole))
    }
    expect(names.length).toBeGreaterThanOrEqual(0)
  })
})
