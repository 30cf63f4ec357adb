import { Pseudonyms } from '@sluice/screen/pseudonyms'
import { compileRule } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'
import fc from 'fast-check'
import type { StreamContext } from '@sluice/wire/event-texts'
import { ChatTap } from '@sluice/wire/chat'
import { GeminiTap } from '@sluice/wire/gemini'
import type { ClientProtocol } from '@sluice/wire/protocols'
import { NO_USAGE } from '@sluice/wire/usage'
import { expect, test } from 'vitest'
import { byTier, lawRuns } from '../../../test/runner/tier.ts'
import type { GuardAction } from '../../domain/guard.ts'
import { RequestMemory } from '../../limits/request-memory.ts'
import type { LastingResponse, Tap } from '../../call/dialects/answer-reader.ts'
import { textGuard } from '../../../test/fixtures/text-guard.ts'
import { CallGuards } from './call-guards.ts'
import { ActiveGuard } from './active-guard.ts'
import { GuardedTap } from './guarded-tap.ts'
import { KnownTexts } from './known-texts.ts'

const MATCH = { kind: 'regex', regex: ['code-[0-9]{1,6}-x'], most: 256 } as const
const known = new KnownTexts(
  new RequestMemory(
    () => 1024,
    () => performance.now(),
  ),
)

function guardsWith(action: GuardAction): { readonly guards: CallGuards; readonly screen: TextScreen } {
  const guard = textGuard({ name: 'codes', do: action, match: MATCH })
  const rule = compileRule(guard.name, MATCH)
  const screen = new TextScreen([{ rule, do: action, with: '#' }])
  const pseudonyms = new Pseudonyms({ key: Buffer.alloc(32), user: '1' })
  const owner = known.of({ client: 1, key: 1 })
  return { guards: new CallGuards([new ActiveGuard(guard)], pseudonyms, owner, () => screen), screen }
}

/** A stream that is sent as it came, but for these last bytes, which are sent after the charge. */
function passing(last: Buffer = Buffer.alloc(0)): Tap {
  return {
    push: (chunk: Buffer) => ({ forward: chunk, terminal: false }),
    end: () => ({ complete: true }),
    takeLastTexts: () => last,
    finalBytes: () => Buffer.alloc(0),
    release() {},
    error: undefined,
  } as unknown as Tap
}

/** Texts that arrive in pieces: an event with one, and the piece in an event. */
const TEXTS: readonly {
  readonly what: string
  readonly dialect: ClientProtocol
  readonly event: (piece: string) => object
  readonly read: (event: Loose) => string | undefined
}[] = [
  {
    what: 'a text',
    dialect: 'chat',
    event: (content) => ({ choices: [{ index: 1, delta: { content } }] }),
    read: (event) => event['choices']?.[0]?.['delta']?.['content'],
  },
  {
    what: 'blocks of thoughts',
    dialect: 'chat',
    event: (text) => ({
      choices: [{ index: 0, delta: { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] } }],
    }),
    read: (event) => event['choices']?.[0]?.['delta']?.['content']?.[0]?.['thinking']?.[0]?.['text'],
  },
  {
    what: 'a member of a choice that the API does not describe',
    dialect: 'chat',
    event: (note) => ({ choices: [{ index: 0, delta: {}, note }] }),
    read: (event) => event['choices']?.[0]?.['note'],
  },
  {
    what: 'a member of a delta that the API does not describe',
    dialect: 'chat',
    event: (note) => ({ choices: [{ index: 2, delta: { x: { y: [{ index: 1, note }, { index: 0 }] } } }] }),
    read: (event) => event['choices']?.[0]?.['delta']?.['x']?.['y']?.[0]?.['note'],
  },
  {
    what: 'a delta of a type that the API does not describe',
    dialect: 'messages',
    event: (note) => ({ type: 'content_block_delta', index: 2, delta: { type: 'x_delta', note } }),
    read: (event) => event['delta']?.['note'],
  },
  {
    what: 'an event of a type that the API does not describe',
    dialect: 'responses',
    event: (delta) => ({ type: 'response.x.delta', output_index: 1, sequence_number: 3, delta }),
    read: (event) => event['delta'],
  },
  {
    what: 'a text',
    dialect: 'gemini',
    event: (text) => ({ candidates: [{ index: 1, content: { parts: [{ text }] } }] }),
    read: (event) => event['candidates']?.[0]?.['content']?.['parts']?.[0]?.['text'],
  },
  {
    what: 'arguments in pieces',
    dialect: 'gemini',
    event: (stringValue) => ({
      candidates: [
        {
          content: {
            parts: [
              { functionCall: { partialArgs: [{ jsonPath: '$.a', stringValue, willContinue: true }] } },
            ],
          },
        },
      ],
    }),
    read: (event) =>
      event['candidates']?.[0]?.['content']?.['parts']?.[0]?.['functionCall']?.['partialArgs']?.[0]?.[
        'stringValue'
      ],
  },
]
type Loose = { readonly [name: string]: any } // eslint-disable-line

/** Texts that have matches and beginnings of them. */
const text = fc
  .array(
    fc.constantFrom(
      'code-',
      'code-1-x',
      '4711',
      '-x',
      ' ',
      '"',
      'é😀',
      'co',
      'de-1-x',
      '\n',
      '\\n',
      '\\u0063ode-',
      '{"',
      '\\',
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 })

/** The parts of something that is cut at these places, from 0 to 1. */
function cut<Whole extends { readonly length: number }>(
  slice: (from: number, to: number) => Whole,
  length: number,
  at: readonly number[],
): Whole[] {
  const ends = [...at.map((one) => Math.round(one * length)), length].toSorted((a, b) => a - b)
  return ends.map((end, index) => slice(ends[index - 1] ?? 0, end))
}

test.each(
  TEXTS.flatMap((one) => (['redact', 'block', 'flag'] as const).map((action) => ({ ...one, action }))),
)(
  "$what ($dialect, $action) is sent as the guard's rules leave it, however it is cut into events and bytes",
  ({ dialect, action, event, read }) => {
    const origin: StreamContext = { dialect, signsReasoning: false }
    fc.assert(
      fc.property(text, cuts, cuts, fc.boolean(), (given, ofText, ofBytes, isLastHeld) => {
        const { guards, screen } = guardsWith(action)
        const pieces = cut((from, to) => given.slice(from, to), given.length, ofText)
        const bytes = Buffer.from(pieces.map((one) => `data: ${JSON.stringify(event(one))}\n\n`).join(''))
        const chunks = cut((from, to) => bytes.subarray(from, to), bytes.length, ofBytes)
        const inner = passing(isLastHeld ? chunks.pop() : undefined)
        const tap = new GuardedTap(inner, { guards, ...origin, isArray: false }, { resize() {} })
        let sent = ''
        for (const chunk of chunks) sent += String(tap.push(chunk).forward ?? '')
        tap.end()
        sent += tap.finalBytes(NO_USAGE).toString()
        const said = sent
          .split('\n\n')
          .filter((frame) => frame.includes('{'))
          .map((frame) => read(JSON.parse(frame.slice(frame.indexOf('{'))) as Loose) ?? '')
        expect([said.join(''), tap.isBlocked]).toEqual([
          screen.apply(given).text,
          screen.apply(given).blockedBy !== undefined,
        ])
      }),
      { numRuns: lawRuns(300) },
    )
  },
)

test.each(TEXTS)(
  '$what ($dialect) that a guard blocks at the end of the stream is sent up to the match, and then the refusal',
  ({ dialect, event, read }) => {
    const { guards } = guardsWith('block')
    const stream = { guards, dialect, signsReasoning: false, isArray: false }
    const tap = new GuardedTap(passing(), stream, { resize() {} })
    // The string of JSON may still become longer, so that the match is certain only at the end.
    const bytes = Buffer.from(`data: ${JSON.stringify(event('{"{"code-code-1-x'))}\n\n`)
    const pushed = String(tap.push(bytes).forward)
    expect([tap.end().complete, tap.isBlocked]).toEqual([true, true])
    const frames = (pushed + tap.refusalBytes(NO_USAGE).toString()).split('\n\n')
    const events = frames.flatMap((frame) =>
      frame.includes('{') ? [JSON.parse(frame.slice(frame.indexOf('{'))) as Loose] : [],
    )
    expect(events.map((one) => read(one) ?? '').join('')).toBe('{"{"code-')
    expect(read(events.at(-1) as Loose)).toBeUndefined()
  },
)

test.each([
  ['redact', ['say ', '# now'], 'STOP'],
  ['block', ['say '], 'SAFETY'],
] as const)(
  'a match that continues into the event that ends a Gemini stream is found (%s)',
  (action, said, reason) => {
    const { guards } = guardsWith(action)
    const stream = { guards, dialect: 'gemini', signsReasoning: false, isArray: false } as const
    const tap = new GuardedTap(new GeminiTap(), stream, { resize() {} })
    const sent = (['say co', 'de-1-x now'] as const).map((text, at) => {
      const candidate = {
        index: 0,
        content: { parts: [{ text }] },
        ...(at === 1 && { finishReason: 'STOP' }),
      }
      return String(
        tap.push(Buffer.from(`data: ${JSON.stringify({ candidates: [candidate] })}\n\n`)).forward ?? '',
      )
    })
    expect([tap.end().complete, tap.isBlocked]).toEqual([true, action === 'block'])
    sent.push(tap.finalBytes(NO_USAGE).toString())
    const candidates = sent
      .flatMap((events) => events.split('\n\n'))
      .filter((frame) => frame !== '')
      .map((frame) => (JSON.parse(frame.slice('data: '.length)) as Loose)['candidates'][0])
    expect(candidates.flatMap((one) => one.content?.parts?.map((part: Loose) => part['text']) ?? [])).toEqual(
      said,
    )
    expect(candidates.at(-1).finishReason).toBe(reason)
  },
)

test.each([
  { dialect: 'chat', type: {}, after: 1 },
  { dialect: 'messages', type: { type: 'content_block_delta', index: 0 }, after: 1 },
  // A response that is kept can be read later.
  { dialect: 'responses', type: { type: 'response.output_text.delta', output_index: 0 }, after: 3 },
] as const)(
  '$dialect: what arrives after the client has left is checked only if it can be read later',
  (one) => {
    const { guards } = guardsWith('redact')
    let held = 0
    const stream = { guards, dialect: one.dialect, signsReasoning: false, isArray: false } as const
    const tap = new GuardedTap(passing(), stream, { resize: (bytes) => (held = bytes) })
    const said = 'say code-1-x '
    const delta = one.dialect === 'messages' ? { type: 'text_delta', text: said } : said
    const event =
      one.dialect === 'chat' ? { choices: [{ index: 0, delta: { content: said } }] } : { ...one.type, delta }
    const bytes = Buffer.from(`data: ${JSON.stringify(event)}\n\n`)
    expect(String(tap.push(bytes).forward)).toContain('say #')
    expect([guards.matches, held > 0]).toEqual([1, true])
    tap.push(bytes.subarray(0, 20))
    tap.clientLeft()
    tap.push(Buffer.concat([bytes.subarray(20), bytes]))
    expect(tap.end()).toEqual({ complete: true })
    expect([guards.matches, held > 0]).toEqual([one.after, one.after > 1])
  },
)

test('a guard checks the streamed arguments of each tool call as a separate text, by the index of the call', () => {
  const { guards } = guardsWith('redact')
  const stream = { guards, dialect: 'chat', signsReasoning: false, isArray: false } as const
  const tap = new GuardedTap(passing(), stream, { resize() {} })
  const pieces = [
    [0, 'a co'],
    [1, 'de-1-x co'],
    [0, 'de-2-x'],
    [1, 'd'],
  ] as const
  const events = pieces.map(([index, args]) => ({
    choices: [
      { index: 0, delta: { tool_calls: [{ index, type: 'function', function: { arguments: args } }] } },
    ],
  }))
  const bytes = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  const sent = String(tap.push(Buffer.from(bytes)).forward)
  tap.end()
  const said = ['', '']
  for (const frame of (sent + tap.finalBytes({} as never).toString()).split('\n\n').filter(Boolean)) {
    const [{ index, function: called }] = JSON.parse(frame.slice(6)).choices[0].delta.tool_calls
    said[index] += called.arguments
  }
  expect(said).toEqual(['a #', 'de-1-x cod'])
})

/** Sends one large event through a tap; returns what is sent and the turns of the event loop meanwhile. */
async function sentInTurns(dialect: ClientProtocol, events: readonly object[], leave = false) {
  const { guards } = guardsWith('redact')
  const stream = { guards, dialect, signsReasoning: false, isArray: false }
  const tap = new GuardedTap(passing(), stream, { resize() {} })
  let sent = ''
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const bytes = Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
  for (let at = 0; at < bytes.length; at += 500_000) {
    sent += tap.push(bytes.subarray(at, at + 500_000)).forward?.toString() ?? ''
    while (tap.checking) {
      if (leave) tap.clientLeft()
      await tap.checking
      sent += tap.push(Buffer.alloc(0)).forward?.toString() ?? ''
    }
  }
  isOver = true
  tap.end()
  return { sent: sent + tap.finalBytes({} as never).toString(), turns, matches: guards.matches }
}

const LINES = byTier(60_000, 300_000)
const LONG = 'see code-4711-x, "co\nde".\n'.repeat(LINES)

test.each([
  ['a piece of a text', 'chat', (content: string) => ({ choices: [{ index: 0, delta: { content } }] })],
  ['arguments', 'chat', (text: string) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }] })], // biome-ignore format: a table
  ['a whole text', 'chat', (note: string) => ({ choices: [{ index: 0, delta: {}, note }] })],
] as const)(
  'one large event with %s is checked in turns with other work, and what follows waits',
  async (_, dialect, event) => {
    const { sent, turns, matches } = await sentInTurns(dialect, [event(LONG), event('code-1-x')])
    expect(turns).toBeGreaterThan(20)
    expect(matches).toBe(LINES + 1)
    const texts = sent.split('\n\n').map((frame) => frame.slice('data: '.length))
    expect(sent).not.toContain('code-')
    expect(texts.filter((text) => text !== '').map((text) => JSON.parse(text) as object)).toMatchObject([
      event(LONG.replaceAll('code-4711-x', '#')),
      event('#'),
    ])
  },
)

test('the check of a large event ends when the client leaves', async () => {
  const { sent, matches } = await sentInTurns(
    'chat',
    [{ choices: [{ index: 0, delta: { content: LONG } }] }],
    true,
  )
  expect(sent).toBe('')
  expect(matches).toBeLessThan(LINES / 3)
})

/** Events whose ids and names are no words of a protocol, and the piece of a text in each. */
const NAMED: readonly (readonly [dialect: ClientProtocol, events: readonly object[]])[] = [
  [
    'chat',
    [{ id: 'a code-1-x', model: 'a code-1-x', choices: [{ index: 0, delta: { content: 'code-4' } }] }],
  ],
  [
    'messages',
    [
      { type: 'message_start', message: { id: 'a code-1-x', model: 'a code-1-x', usage: {}, content: [] } },
      { type: 'content_block_start', index: 0, content_block: { type: 'a code-1-x', text: 'code-4' } },
    ],
  ],
  ['responses', [{ type: 'response.created', response: { id: 'a code-1-x', output: [] } }]],
  [
    'gemini',
    [
      {
        candidates: [
          {
            content: {
              parts: [
                {
                  functionCall: {
                    partialArgs: [{ jsonPath: 'a code-1-x', stringValue: 'code-4', willContinue: true }],
                  },
                },
              ],
            },
          },
        ],
      },
    ],
  ],
]

test.each(
  NAMED.flatMap(([dialect, events]) =>
    (['redact', 'block'] as const).map((action) => [dialect, action, events] as const),
  ),
)(
  'events that a guard adds to a stream have no names that it has changed or blocked (%s, %s)',
  (dialect, action, events) => {
    const { guards } = guardsWith(action)
    const stream = { guards, dialect, signsReasoning: false, isArray: false }
    const tap = new GuardedTap(passing(), stream, { resize() {} })
    let sent = ''
    for (const event of events)
      sent += String(tap.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`)).forward ?? '')
    tap.end()
    sent += tap.isBlocked ? String(tap.refusalBytes(NO_USAGE)) : String(tap.finalBytes(NO_USAGE))
    expect(sent).not.toContain('code-1-x')
  },
)

test.each([['block', 0] as const, ['redact', 1] as const])(
  'a stream that a guard has blocked is not stored, and neither are its signatures (%s)',
  async (action, times) => {
    let kept = 0
    const lasting = { keep: async () => void (kept += 1) }
    const { guards } = guardsWith(action)
    const stream = { guards, dialect: 'chat', signsReasoning: false, isArray: false } as const
    const tap = new GuardedTap(Object.assign(passing(), { lasting }), stream, { resize() {} })
    tap.push(Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"a code-1-x."}}]}\n\n'))
    await tap.lasting?.keep?.(...([] as unknown as Parameters<NonNullable<LastingResponse['keep']>>))
    expect(kept).toBe(times)
  },
)

// Gemini's older models, and servers that convert their streams, state the reason for the end in every event.
test.each([
  [
    'chat',
    (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: 'stop' }] }),
    (event: Loose) => event['choices']?.[0]?.['delta']?.['content'],
  ],
  [
    'gemini',
    (text: string) => ({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] }),
    (event: Loose) => event['candidates']?.[0]?.['content']?.['parts']?.[0]?.['text'],
  ],
] as const)(
  'a match is found in a stream of %s that states its end in every event',
  async (dialect, event, read) => {
    const { guards } = guardsWith('redact')
    const inner: unknown = dialect === 'chat' ? new ChatTap({ swallowUsage: false }) : new GeminiTap()
    const stream = { guards, dialect, signsReasoning: false, isArray: false }
    const tap = new GuardedTap(inner as Tap, stream, { resize() {} })
    let sent = ''
    for (const piece of ['say co', 'de-1', '2-x', ' now'])
      sent += String(tap.push(Buffer.from(`data: ${JSON.stringify(event(piece))}\n\n`)).forward ?? '')
    expect(tap.end().complete).toBe(true)
    await tap.checking
    sent += String(tap.push(Buffer.alloc(0)).forward ?? '')
    tap.end()
    sent += String(tap.finalBytes(NO_USAGE))
    const frames = sent.split('\n\n').filter((frame) => frame !== '')
    const events = frames.map((frame) => JSON.parse(frame.slice('data: '.length)) as Loose)
    expect(events.map(read).join('')).toBe('say # now')
    // The last text stands before the end of the answer or within it, where clients read it.
    expect(read(events.at(-1) as Loose)).toBe(' now')
    expect(guards.matches).toBe(1)
  },
)

test('a match is found in a stream of Gemini that states an end in every event, and whose last event is held back', async () => {
  const { guards } = guardsWith('redact')
  const stream = { guards, dialect: 'gemini', signsReasoning: false, isArray: false } as const
  const tap = new GuardedTap(new GeminiTap() as unknown as Tap, stream, { resize() {} })
  const one = (index: number, text: string, finishReason?: string) => ({
    index,
    content: { parts: [{ text }] },
    finishReason,
  })
  const events = [
    [one(0, 'say co', 'STOP'), one(1, 'a')],
    [one(0, 'de-12-x now', 'STOP'), one(1, 'b', 'STOP')],
  ]
  let sent = ''
  for (const candidates of events)
    sent += String(tap.push(Buffer.from(`data: ${JSON.stringify({ candidates })}\n\n`)).forward ?? '')
  expect(tap.end().complete).toBe(true)
  await tap.checking
  sent += String(tap.push(Buffer.alloc(0)).forward ?? '')
  tap.end()
  sent += String(tap.finalBytes(NO_USAGE))
  expect(guards.matches).toBe(1)
  expect(sent).not.toContain('de-12')
})
