import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../../../test/generators/characters.ts'
import { WITHOUT_ANSWER } from '../../answer-error.ts'
import { generatedText } from '../answer.ts'
import type { TapEndResult } from '../../sse/stream-tap.ts'
import { ChatTap } from './tap.ts'
import { usageInChatReply } from '../usage.ts'
import { byTier, lawRuns } from '../../../../../test/runner/tier.ts'

const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }

/** A frame as most upstreams write it. */
function chunk(delta: object | null, parts: object = {}, index = 0): string {
  const choices = delta === null ? [] : [{ index, delta, logprobs: null, finish_reason: null }]
  return `data: ${JSON.stringify({ id: 'c-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...parts })}\n\n`
}

const finish = (reason = 'stop', index = 0): string =>
  chunk(null, { choices: [{ index, delta: {}, finish_reason: reason }] })
const message = (content: string): string =>
  chunk(null, { choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] })
const usageChunk = chunk(null, { usage: USAGE })
const DONE = 'data: [DONE]\n\n'

interface Watched {
  readonly tap: ChatTap
  readonly forwarded: string
  readonly end: TapEndResult
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((n) => n % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length))
}

function watch(chunks: readonly Buffer[], swallowUsage = false): Watched {
  const tap = new ChatTap({ swallowUsage })
  const forwarded: Buffer[] = []
  for (const piece of chunks) {
    const lent = Buffer.from(piece)
    const { forward } = tap.push(lent)
    if (forward) forwarded.push(Buffer.from(forward))
    lent.fill(0x58)
  }
  const end = tap.end()
  return { tap, forwarded: Buffer.concat(forwarded).toString('latin1'), end }
}

const facts = ({ tap, forwarded, end }: Watched): object => ({
  forwarded,
  ending: end.ending.toString('latin1'),
  cutBytes: end.cutBytes,
  complete: end.complete,
  usage: tap.usage,
  done: tap.done,
  error: tap.error,
  sawFinish: tap.sawFinish,
  emittedBytes: tap.emittedBytes,
  contentFrames: tap.contentFrames,
  text: tap.text,
})

interface Chunk {
  readonly choices?: readonly {
    readonly index: number
    readonly delta: unknown
    readonly finish_reason: unknown
  }[]
  readonly usage?: unknown
  readonly error?: unknown
}

function framesOf(stream: string): string[] {
  const frames: string[] = []
  let frame = ''
  for (const line of stream.match(/[^\n]*\n/g) ?? []) {
    frame += line
    if (line.trim() !== '') continue
    frames.push(frame)
    frame = ''
  }
  return frames
}

/** Oracle: the same facts, read frame by frame with JSON.parse. Lines end with LF or CR LF here. */
function reference(stream: string, swallowUsage: boolean): object {
  const frames = framesOf(stream)
  const texts = new Map<number, string>()
  const finished = new Map<number, boolean>()
  const found = {
    usage: undefined as unknown,
    done: false,
    error: undefined as unknown,
    emittedBytes: 0,
    contentFrames: 0,
  }
  const stated = new Map<string, unknown>()
  let forwarded = ''
  let ending = ''
  let read = 0
  for (const frame of frames) {
    const data = frame
      .split(/\r?\n/)
      .filter((line) => line.startsWith('data:'))
      .map((line) => line.slice(5).replace(/^ /, ''))
      .join('\n')
    let value: Chunk | undefined
    try {
      value = JSON.parse(data) as Chunk
    } catch {}
    if (data === '[DONE]' || value?.error) {
      if (data === '[DONE]') {
        found.done = true
        if (finished.size === 0) found.error = { ...WITHOUT_ANSWER, afterContent: false }
      } else found.error = { data, afterContent: found.contentFrames > 0 }
      ending = stream.slice(read)
      break
    }
    read += frame.length
    if (value) found.usage = usageInChatReply({ ...value }) ?? found.usage
    const more = Object.entries(value ?? {}).filter(
      ([name, said]) =>
        !/^(?:id|object|created|model|choices|usage|obfuscation)$/.test(name) && said !== null,
    )
    const isNew = more.some(([name, said]) => typeof said === 'object' || stated.get(name) !== said)
    for (const [name, said] of more) stated.set(name, said)
    if (swallowUsage && value?.usage && value.choices?.length === 0) {
      const { usage: _, ...rest } = value
      if (isNew) forwarded += `data: ${JSON.stringify(rest)}\n\n`
      continue
    }
    forwarded += frame
    let any = false
    for (const { index, delta, finish_reason } of value?.choices ?? []) {
      finished.set(index, Boolean(finish_reason) || finished.get(index) === true)
      for (const piece of generatedText(delta)) {
        texts.set(index, (texts.get(index) ?? '') + Buffer.from(piece).toString())
        found.emittedBytes += Buffer.byteLength(piece)
        any = true
      }
    }
    if (any) found.contentFrames++
  }
  const sawFinish = finished.size > 0 && [...finished.values()].every(Boolean)
  return {
    ...found,
    forwarded: Buffer.from(forwarded).toString('latin1'),
    ending: Buffer.from(ending).toString('latin1'),
    cutBytes: ending ? 0 : Buffer.byteLength(stream) - Buffer.byteLength(frames.join('')),
    complete: !found.error && (found.done || sawFinish),
    sawFinish,
    text: [...texts.values()].join('\n'),
  }
}

const words = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 12 }),
  fc.constantFrom(
    'Hello',
    ' world',
    '\n\n',
    '"',
    '\\',
    '\\"',
    '"usage":{"prompt_tokens":1,"completion_tokens":1}',
    'data: [DONE]\n\n',
    '{"error":{"message":"x"}}',
    '漢字',
    '🙂',
    '',
    'm',
    'c-1',
  ),
)
const index = fc.constantFrom(0, 0, 0, 1)
const frame = fc.oneof(
  { weight: 12, arbitrary: fc.tuple(words, index).map(([content, i]) => chunk({ content }, {}, i)) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(words, words)
      .map(([content, obfuscation]) => chunk({ content }, { usage: null, obfuscation })),
  },
  {
    weight: 4,
    arbitrary: words.map((reasoning_content) =>
      chunk({ role: 'assistant', content: null, reasoning_content }),
    ),
  },
  { weight: 2, arbitrary: words.map((reasoning) => chunk({ reasoning, reasoning_content: reasoning })) },
  {
    weight: 4,
    arbitrary: words.map((text) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
  },
  {
    weight: 2,
    arbitrary: words.map((name) =>
      chunk({ tool_calls: [{ index: 0, id: 'c', function: { name, arguments: name } }] }),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(words, fc.nat()).map(([content, created]) => chunk({ content }, { created })),
  },
  { weight: 1, arbitrary: words.map((content) => chunk({ content }, { usage: USAGE })) },
  { weight: 1, arbitrary: words.map((content) => chunk({ content }).replace(/\n/g, '\r\n')) },
  { weight: 1, arbitrary: words.map((content) => chunk({ content }).replace('"m"', '"other"')) },
  { weight: 1, arbitrary: words.map((content) => chunk({ content }).replace('null}]', '"stop"}]')) },
  fc.constantFrom(
    chunk({ role: 'assistant', content: '' }),
    finish(),
    finish('length', 1),
    usageChunk,
    ': ping\n\n',
    '\n',
    'data: {"no\n\n',
    'data: 1\n\n',
    'event: x\ndata: {}\n\n',
    chunk(null, { prompt_filter_results: [] }),
  ),
)
const ending = fc.constantFrom(
  '',
  '',
  DONE,
  `${DONE}\n`,
  'data: {"error":{"message":"x"}}\n\n',
  `data: {"error":"x"}\n\n${DONE}`,
  'data: {"cho',
  chunk({ content: 'cut' }).slice(0, -1),
)
const stream = fc
  .tuple(fc.array(frame, { maxLength: 25 }), ending)
  .map(([frames, last]) => frames.join('') + last)

describe('what a chat stream contains', () => {
  test('text, usage and end of a chat stream are read as JSON.parse of every frame gives them, however it is divided', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 10 }), fc.boolean(), (text, cuts, swallowUsage) => {
        const bytes = Buffer.from(text)
        const expected = reference(text, swallowUsage)
        expect(facts(watch([bytes], swallowUsage))).toEqual(expected)
        expect(facts(watch(cut(bytes, cuts), swallowUsage))).toEqual(expected)
      }),
      { numRuns: lawRuns(3000) },
    )
  })

  test('a native chat stream that arrives byte by byte gives the same text, usage and end as one that arrives in one piece', () => {
    const text = [
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: 'Héllo' }),
      chunk({ content: ' "you"' }),
      chunk({ content: '\n' }),
      finish(),
      usageChunk,
      DONE,
    ].join('')
    const bytes = Buffer.from(text)
    const whole = facts(watch([bytes], true))
    expect(
      facts(
        watch(
          [...bytes].map((byte) => Buffer.from([byte])),
          true,
        ),
      ),
    ).toEqual(whole)
    expect(whole).toMatchObject({
      text: 'Héllo "you"\n',
      emittedBytes: 13,
      contentFrames: 3,
      sawFinish: true,
      done: true,
      complete: true,
      ending: DONE,
      cutBytes: 0,
    })
  })

  test('a text in a chat stream that looks like a usage is not read as usage', () => {
    const text = '"usage":{"prompt_tokens":1,"completion_tokens":1}'
    const { tap } = watch([
      Buffer.from(
        chunk({ content: 'a' }) + chunk({ content: text }) + chunk({ content: text }) + finish() + DONE,
      ),
    ])
    expect(tap.usage).toBeUndefined()
    expect(tap.text).toBe(`a${text}${text}`)
  })

  test('the last usage report of a chat stream counts, wherever it is', () => {
    const early = chunk({ content: 'a' }, { usage: { prompt_tokens: 5, completion_tokens: 1 } })
    const late = chunk(
      {},
      {
        usage: { prompt_tokens: 5, completion_tokens: 2 },
        choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
      },
    )
    expect(watch([Buffer.from(early + early + late + DONE)]).tap.usage).toMatchObject({ input: 5, output: 2 })
    expect(watch([Buffer.from(chunk({}, { x_groq: { usage: USAGE } }) + DONE)]).tap.usage).toMatchObject({
      input: 100,
      output: 20,
    })
  })

  test('usage reports of the choices of a chat stream are added up by index, unless one for all comes', () => {
    const counts = (output: number): object => ({ prompt_tokens: 9, completion_tokens: output })
    const ends = (...all: [index: number, output: number][]): string =>
      chunk(null, {
        choices: all.map(([index, output]) => ({
          index,
          delta: {},
          finish_reason: 'stop',
          usage: counts(output),
        })),
      })
    const usageOf = (...frames: string[]): unknown => watch([Buffer.from(frames.join('') + DONE)]).tap.usage
    const added = { input: 9, output: 150 }
    expect(usageOf(ends([0, 100]), ends([1, 50]))).toMatchObject(added)
    expect(usageOf(ends([0, 100], [1, 50]))).toMatchObject(added)
    expect(usageOf(ends([0, 20]), ends([1, 50]), ends([0, 100]))).toMatchObject(added)
    expect(usageOf(ends([0, 100]), ends([1, 50]), usageChunk)).toMatchObject({ input: 100, output: 20 })
  })

  test('a usage report of a chat stream without an output count does not replace one that has it', () => {
    const prompt = chunk({}, { usage: { prompt_tokens: 7, completion_tokens: null } })
    expect(watch([Buffer.from(usageChunk + prompt + DONE)]).tap.usage).toMatchObject({
      input: 100,
      output: 20,
    })
    expect(watch([Buffer.from(prompt + usageChunk + DONE)]).tap.usage).toMatchObject({
      input: 100,
      output: 20,
    })
    expect(watch([Buffer.from(prompt + DONE)]).tap.usage).toMatchObject({ input: 7, outputIsUnknown: true })
  })

  test('frames of a chat stream that are almost equal are each read with their own text and usage', () => {
    const one = { usage: { prompt_tokens: 1, completion_tokens: 1 } }
    const two = { usage: { prompt_tokens: 1, completion_tokens: 2 } }
    const usages = [one, two, one].map((parts) => chunk({ content: 'a' }, parts)).join('')
    expect(watch([Buffer.from(usages)]).tap.usage?.output).toBe(1)
    // The text is the same as the model's name.
    const named = chunk({ content: 'm' }) + chunk({ content: 'm' }, { model: 'longer' })
    expect(watch([Buffer.from(named)]).tap.text).toBe('mm')
    // A line end within the text: the frame is neither valid JSON nor a single line.
    const broken =
      chunk({ content: 'a' }) + chunk({ content: 'b c' }).replace('b c', 'b\nc') + chunk({ content: 'd' })
    expect(watch([Buffer.from(broken)])).toMatchObject({
      forwarded: broken,
      tap: { text: 'ad', contentFrames: 2 },
    })
    // More bytes after the padding than before.
    const padded =
      chunk({ content: 'a' }, { obfuscation: 'x' }) + chunk({ content: 'b' }, { obfuscation: 'yz', ...two })
    expect(watch([Buffer.from(padded)]).tap).toMatchObject({ text: 'ab', usage: { output: 2 } })
    const other = padded + chunk({ content: 'c' }, { obfuscation: 'x"', ...one })
    expect(watch([Buffer.from(other)]).tap).toMatchObject({ text: 'abc', usage: { output: 1 } })
  })

  test('a chat stream is complete only if every choice has a finish reason', () => {
    const two = chunk({ content: 'a' }) + chunk({ content: 'b' }, {}, 1) + finish()
    expect(watch([Buffer.from(two)]).tap.sawFinish).toBe(false)
    expect(watch([Buffer.from(two + finish('length', 1))])).toMatchObject({
      tap: { sawFinish: true },
      end: { complete: true },
    })
    expect(watch([Buffer.from(chunk({ content: 'a' }))]).end.complete).toBe(false)
  })

  test('the texts of several choices in a chat stream are recorded separately', () => {
    const text = [0, 1, 0, 1, 0, 1].map((i) => chunk({ content: `${i}x` }, {}, i)).join('')
    expect(watch([Buffer.from(text)]).tap.text).toBe('0x0x0x\n1x1x1x')
  })
})

test.each<[string, string[], string, number]>([
  ['of a server that cannot stream', [message('Hello'), DONE], 'Hello', 1],
  [
    'that repeats the deltas',
    [chunk({ content: 'Hel' }), chunk({ content: 'lo' }), message('Hello'), DONE],
    'Hello',
    2,
  ],
])('the message in a chat stream %s counts once', (_, frames, text, contentFrames) => {
  const { tap, forwarded } = watch([Buffer.from(frames.join(''))])
  expect(tap).toMatchObject({ text, contentFrames })
  expect(forwarded + DONE).toBe(frames.join(''))
})

describe('what is forwarded of a chat stream', () => {
  const content = chunk({ content: 'a' }) + chunk({ content: 'b' }) + chunk({ content: 'c' })

  test('the received bytes of a chat stream are forwarded without a copy where all of them can be forwarded', () => {
    const tap = new ChatTap({ swallowUsage: true })
    for (const text of [content, chunk({ role: 'assistant' }), ': ping\n\n', content]) {
      const bytes = Buffer.from(text)
      expect(tap.push(bytes)).toEqual({ forward: bytes, terminal: false })
      expect(tap.push(bytes).forward).toBe(bytes)
    }
  })

  const chunkOfUsage = (more: object): string =>
    `data: ${JSON.stringify({ ...more, choices: [], usage: { prompt_tokens: 1, completion_tokens: 3 } })}\n\n`
  test.each([
    ['timings', { timings: { predicted_ms: 1.5 } }],
    ['a first system_fingerprint', { id: 'a', system_fingerprint: 'fp_2' }],
  ])(
    'a chunk with usage that only the gateway requested is forwarded without its usage if it states something else: %s',
    (_, more) => {
      const { forwarded, tap } = watch([Buffer.from(content + chunkOfUsage(more) + 'data: [DONE]\n\n')], true)
      expect(forwarded).toBe(`${content}data: ${JSON.stringify({ ...more, choices: [] })}\n\n`)
      expect(tap.usage).toMatchObject({ input: 1, output: 3 })
    },
  )

  test('a chunk with usage that only the gateway requested is left out if it repeats what other chunks state, or pads', () => {
    const fingerprint = { system_fingerprint: 'fp_1' }
    const first = `data: ${JSON.stringify({ ...fingerprint, choices: [{ index: 0, delta: { content: 'a' } }] })}\n\n`
    const last = chunkOfUsage({ ...fingerprint, id: 'x', obfuscation: 'abc', service_tier: null })
    expect(watch([Buffer.from(first + last)], true).forwarded).toBe(first)
  })

  test('complete frames of a chat stream are forwarded at once, and an incomplete one when it is complete', () => {
    const tap = new ChatTap({ swallowUsage: true })
    const bytes = Buffer.from(content)
    const at = content.length - 10
    expect(tap.push(bytes.subarray(0, at)).forward?.toString()).toBe(
      chunk({ content: 'a' }) + chunk({ content: 'b' }),
    )
    expect(tap.push(bytes.subarray(at)).forward?.toString()).toBe(chunk({ content: 'c' }))
    expect(tap.end()).toEqual({ ending: Buffer.alloc(0), cutBytes: 0, complete: false })
  })

  test('an incomplete frame at the end of a broken chat stream is not forwarded', () => {
    const { forwarded, end, tap } = watch([Buffer.from(content + chunk({ content: 'lost' }).slice(0, -1))])
    expect(forwarded).toBe(content)
    expect(end).toMatchObject({ cutBytes: chunk({ content: 'lost' }).length - 1, complete: false })
    expect(tap.text).toBe('abc')
  })

  test('all of a chat stream is forwarded except the usage chunk that only the gateway requested', () => {
    const odd =
      chunk(null, { usage: null }) +
      chunk(null, { prompt_filter_results: [] }) +
      chunk({ content: 'x' }, { usage: USAGE })
    expect(watch([Buffer.from(odd + usageChunk + odd + DONE)], true)).toMatchObject({
      forwarded: odd + odd,
      end: { complete: true },
    })
    expect(watch([Buffer.from(odd + usageChunk + DONE)], false).forwarded).toBe(odd + usageChunk)
    // The gateway requested this chunk, so it is not forwarded even if its numbers are invalid.
    const rubbish = chunk(null, { usage: { prompt_tokens: -1 } })
    expect(watch([Buffer.from(content + rubbish + DONE)], true)).toMatchObject({
      forwarded: content,
      tap: { usage: undefined },
    })
  })

  test('[DONE] and everything after it in a chat stream is held back until the charge', () => {
    const tap = new ChatTap({ swallowUsage: false })
    expect(tap.push(Buffer.from(`${content}${DONE}\n`))).toEqual({
      forward: Buffer.from(content),
      terminal: true,
    })
    expect(tap.push(Buffer.from(': bye\n\n'))).toEqual({ forward: undefined, terminal: true })
    expect(tap.end()).toEqual({ ending: Buffer.from(`${DONE}\n: bye\n\n`), cutBytes: 0, complete: true })
  })

  test('a final [DONE] of a chat stream is accepted without its blank line', () => {
    for (const done of ['data: [DONE]', 'data: [DONE]\n', 'data:[DONE]\r\n']) {
      const { end, tap, forwarded } = watch([Buffer.from(content + done)])
      expect(tap.done).toBe(true)
      expect(forwarded).toBe(content)
      expect(end).toEqual({ ending: Buffer.from(done), cutBytes: 0, complete: true })
    }
  })

  test('bytes after [DONE] in a chat stream are held up to a limit', () => {
    const tap = new ChatTap({ swallowUsage: false })
    tap.push(Buffer.from(DONE))
    for (let i = 0; i < 100; i++) tap.push(Buffer.alloc(10_000, 0x0a))
    expect(tap.end().ending.length).toBeLessThan(70_000)
  })
})

describe('error frames', () => {
  test.each([
    ['an error object', 'data: {"error":{"message":"x","type":"t"}}\n\n'],
    ['an error text', 'data: {"error":"x"}\n\n'],
    ['an error beside choices', chunk({ content: '' }, { error: { code: 'server_error' } })],
    ['an event of that name', 'event: error\ndata: {"message":"x"}\n\n'],
    [
      'an event of that name beside choices',
      'event: error\ndata: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n',
    ],
    ['an object of that kind', 'data: {"object":"error","message":"x","code":400}\n\n'],
  ])('an error frame ends a native chat stream: %s', (_kind, error) => {
    const first = watch([Buffer.from(`: hi\n\n${error}${DONE}`)])
    expect(first.tap.error).toEqual({
      data: error.replace(/^event.*\n/, '').slice(6, -2),
      afterContent: false,
    })
    expect(first.forwarded).toBe(': hi\n\n')
    expect(first.end).toMatchObject({ ending: Buffer.from(error + DONE), complete: false })
    const later = watch([Buffer.from(chunk({ content: 'a' }) + error)])
    expect(later.tap.error?.afterContent).toBe(true)
    expect(later.forwarded).toBe(chunk({ content: 'a' }))
  })

  test('what follows the reason of a failure in a chat stream is read for its usage, and kept up to 1 MiB', () => {
    const frames = [
      finish('error'),
      ...Array.from({ length: 200 }, () => chunk({ content: 'x'.repeat(10_000) })),
      usageChunk,
    ]
    const { tap, end } = watch(frames.map((frame) => Buffer.from(frame)))
    expect(tap.usage).toMatchObject({ input: 100, output: 20 })
    expect(end.complete).toBe(false)
    expect(tap.errorFrame?.toString()).toContain(frames[0])
    expect(tap.errorFrame?.length).toBeLessThan(1_048_576 + 20_000)
  })

  test('a chat chunk whose error is null is not an error', () => {
    const text = chunk({ content: 'a' }, { error: null }) + chunk({ content: 'b' }, { error: null })
    expect(watch([Buffer.from(text)])).toMatchObject({
      forwarded: text,
      tap: { error: undefined, text: 'ab' },
    })
  })
})

describe('recorded traffic', () => {
  const folder = process.env['RECORDINGS']
  const streams = folder ? readdirSync(join(folder, 'chat')).filter((name) => name.endsWith('.sse')) : []

  test(`${streams.length} recorded chat streams are read as JSON.parse of every frame gives them, however they are divided`, () => {
    for (const name of streams) {
      const bytes = readFileSync(join(folder ?? '', 'chat', name))
      for (const swallowUsage of [true, false]) {
        const whole = facts(watch([bytes], swallowUsage))
        expect(whole, name).toEqual(reference(bytes.toString(), swallowUsage))
        for (const size of byTier([1, 100], [1, 2, 3, 100, 1000, 4096])) {
          const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
            bytes.subarray(i * size, (i + 1) * size),
          )
          expect(facts(watch(pieces, swallowUsage)), `${name} by ${size}`).toEqual(whole)
        }
      }
    }
    expect(streams.length).toBeGreaterThanOrEqual(0)
  })
})

test('a chat frame that begins like an earlier one, but differs in its end, is read as a different frame', () => {
  const frame = (choice: number): string =>
    `data: {"choices":[{"index":${choice},"delta":{"content":"aaaa"}}]}\n\n`
  const { length } = frame(0)
  const tap = new ChatTap({ swallowUsage: false })
  // The fourth frame is cut after all the bytes that it shares with the others.
  const cut = length - 10
  tap.push(Buffer.from(frame(0)))
  tap.push(Buffer.from(frame(0) + frame(0) + frame(0).slice(0, cut)))
  // If bytes were removed, a frame of another choice would stand at this position.
  tap.push(Buffer.from(`${frame(0).slice(cut)}:${' '.repeat(length - 3)}\n\n${frame(1)}`))
  tap.end()
  expect(tap.text).toBe(`${'aaaa'.repeat(4)}\naaaa`)
})
