import { expect, test } from 'vitest'
import { ESCAPED_TEXTS, SECRET_VALUES, withoutValue, withValue } from '../../test/fixtures/escaped-texts.ts'
import { atNight } from '../../test/runner/tier.ts'
import { redactedContent } from './redact-content.ts'

const MAIL = 'ann.lee@example.com'
const CARD = '4111 1111 1111 1111'
const redacted = (text: string): string => String(redactedContent(Buffer.from(text)))

test('redaction of stored content rewrites only JSON strings that contain a match, and keeps all other bytes', () => {
  const before = `{ "model":"m",  "n":1700000000,"messages":[{"role":"user","content":"caf\\u00e9 `
  const after = ` ok"}],"plain":"caf\\u00e9"}\n`
  expect(redacted(`${before}${MAIL} and ${CARD}${after}`)).toBe(
    `{ "model":"m",  "n":1700000000,"messages":[{"role":"user","content":"café [REDACTED] and [REDACTED]${after}`,
  )
  expect(redacted(`${before}${after}`)).toBe(`${before}${after}`)
})

test('redaction of stored content finds matches written with JSON escapes, and matches in names of members', () => {
  expect(redacted('{"a":"ann.lee\\u0040example.com","ann.lee@example.com":1}')).toBe(
    '{"a":"[REDACTED]","[REDACTED]":1}',
  )
})

test.each([
  ['chat', (text: string) => ({ choices: [{ index: 0, delta: { content: text } }] })],
  [
    'messages',
    (text: string) => ({ type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text } }),
  ],
  [
    'responses',
    (text: string) => ({ type: 'response.output_text.delta', item_id: 'i', content_index: 0, delta: text }),
  ],
  ['gemini', (text: string) => ({ candidates: [{ index: 0, content: { parts: [{ text }] } }] })],
])('redaction finds a match in a stream of %s, however the match is divided into events', (_, event) => {
  const said = `Write to ${MAIL}, or pay with ${CARD}.`
  for (let size = 1; size <= said.length; size += 1) {
    const pieces = said.match(new RegExp(`.{1,${size}}`, 'g')) ?? []
    const stream = pieces.map((piece) => `data: ${JSON.stringify(event(piece))}\n\n`).join('')
    const kept = redacted(`${stream}data: [DONE]\n\n`)
    const texts = [...kept.matchAll(/"(?:content|text|delta)":"((?:[^"\\]|\\.)*)"/g)].map(
      ([, text = '']) => text,
    )
    expect(texts.join('')).toBe('Write to [REDACTED], or pay with [REDACTED].')
    expect(kept.match(/^data: /gm)).toHaveLength(pieces.length + 1)
  }
})

test.each<[string, (text: string) => object, (text: string) => object]>([
  [
    'tool calls with a type in the first event alone',
    (text) => ({
      choices: [
        { index: 0, delta: { tool_calls: [{ index: 0, type: 'function', function: { arguments: text } }] } },
      ],
    }),
    (text) => ({
      choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }],
    }),
  ],
  [
    'choices with an index in some events',
    (text) => ({ choices: [{ index: 0, delta: { content: text } }] }),
    (text) => ({ choices: [{ delta: { content: text } }] }),
  ],
  [
    'chunks of which some have a type or an index of null',
    (text) => ({ type: 'chunk', choices: [{ index: null, delta: { content: text } }] }),
    (text) => ({ choices: [{ index: 0, delta: { content: text } }] }),
  ],
  [
    'blocks whose text begins where they start',
    (text) => ({ type: 'content_block_start', index: 1, content_block: { type: 'text', text } }),
    (text) => ({ type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text } }),
  ],
  [
    'candidates with an index in some events',
    (text) => ({ candidates: [{ index: 0, content: { parts: [{ text }] } }] }),
    (text) => ({ candidates: [{ content: { parts: [{ text }] } }] }),
  ],
  [
    'responses without an index of 0 in some events',
    (text) => ({ type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: text }),
    (text) => ({ type: 'response.output_text.delta', output_index: 1, delta: text }),
  ],
  [
    'responses with another id and another order of members in each event',
    (text) => ({
      type: 'response.output_text.delta',
      item_id: 'a',
      output_index: 1,
      content_index: 2,
      delta: text,
    }),
    (text) => ({
      content_index: 2,
      output_index: 1,
      item_id: 'b',
      type: 'response.output_text.delta',
      delta: text,
    }),
  ],
])('redaction of stored content joins the pieces of a text in %s, as guards do', (_, first, next) => {
  const stream = (one: string, other: string): string =>
    [first(one), next(other)].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  expect(redacted(stream('to ann.lee@exa', 'mple.com'))).toBe(stream('to [REDACTED]', ''))
})

test('redaction of stored content joins the texts of each part and each kind of a response separately', () => {
  const stream = (...texts: readonly string[]): string =>
    [
      { type: 'response.output_text.delta', output_index: 0, content_index: 0 },
      { type: 'response.output_text.delta', output_index: 0, content_index: 1 },
      { type: 'response.output_text.delta', output_index: 1, content_index: 0 },
      { type: 'response.refusal.delta', output_index: 0, content_index: 0 },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0 },
    ]
      .map((event, index) => `data: ${JSON.stringify({ ...event, delta: texts[index] })}\n\n`)
      .join('')
  expect(redacted(stream('ann.lee@', ' or ', ' and ', ' but ', 'example.com'))).toBe(
    stream('[REDACTED]', ' or ', ' and ', ' but ', ''),
  )
})

test.each<[string, object, object]>([
  ['a thought and a text', { text: 'so foo', thought: true }, { text: 'AKIAIOSF' }],
  [
    'arguments of different paths',
    { functionCall: { partialArgs: [{ jsonPath: '$.a', stringValue: 'foo' }] } },
    { functionCall: { partialArgs: [{ jsonPath: '$.b', stringValue: 'AKIAIOSF' }] } },
  ],
])('redaction of stored content joins %s of Gemini separately', (_, before, first) => {
  const stream = (...parts: readonly unknown[]): string =>
    parts
      .map((part) => `data: ${JSON.stringify({ candidates: [{ content: { parts: [part] } }] })}\n\n`)
      .join('')
  const written = (text: string): unknown => JSON.parse(JSON.stringify(first).replace('AKIAIOSF', text))
  expect(redacted(stream(before, first, written('ODNN7EXAMPLE')))).toBe(
    stream(before, written('[REDACTED]'), written('')),
  )
})

test('redaction of stored content joins the text of each choice of a stream separately', () => {
  const event = (index: number, content: string): string =>
    `data: ${JSON.stringify({ choices: [{ index, delta: { content } }] })}\n\n`
  const kept = redacted(event(0, 'ann.lee@') + event(1, 'or: ') + event(0, 'example.com') + event(1, 'x'))
  expect(kept).not.toContain('ann.lee')
  expect(kept).toContain('"or: "')
})

test('redaction of stored content treats the elements of a Gemini array like the events of a stream', () => {
  const chunk = (text: string) => ({ candidates: [{ content: { parts: [{ text }] } }] })
  const kept = redacted(JSON.stringify([chunk('to ann.lee@exa'), chunk('mple.com now')]))
  expect(JSON.parse(kept)).toEqual([chunk('to [REDACTED]'), chunk(' now')])
})

test('redaction of stored content that is neither JSON nor events, or was cut off, treats it as plain text', () => {
  expect(redacted(`to ${MAIL}`)).toBe('to [REDACTED]')
  expect(redacted(`{"content":"to ${MAIL}`)).toBe('{"content":"to [REDACTED]')
  expect(redacted(`${'['.repeat(200_000)}${MAIL}`)).not.toContain(MAIL)
})

test('content that is not UTF-8 is not stored at level redacted, because it cannot be searched for secrets', () => {
  for (const bytes of [
    [0xff, 0xfe, 0x00],
    [0x80],
    [0x61, 0xc0],
    [0x61, 0xc3, 0x28],
    [0xe2, 0x82, 0x80, 0x80],
  ])
    expect(redactedContent(Buffer.from([...Buffer.from(MAIL), ...bytes]))).toBeUndefined()
})

test('a stream that ends in the middle of a character is stored redacted up to its last complete event', () => {
  const event = (text: string): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`
  for (const character of ['é', '€', '😀']) {
    const stream = Buffer.from(`${event(`to ${MAIL}`)}data: {"choices":[{"delta":{"content":"${character}`)
    for (let cut = 1; cut < Buffer.byteLength(character); cut += 1)
      expect(redactedContent(stream.subarray(0, -cut))?.toString()).toBe(
        `${event('to [REDACTED]')}[REDACTED]`,
      )
  }
})

test('content with more JSON values than a request may have is not stored at level redacted', () => {
  const many = (value: string, times: number): string => `{"x":[${Array(times).fill(value).join()}]}`
  expect(redacted(many('[]', 199_998))).toBe(many('[]', 199_998))
  for (const value of ['[]', '0', '""']) expect(redacted(many(value, 199_999))).toBe('undefined')
  expect(redacted(`data: ${many('0', 199_999)}\n\n`)).toBe('undefined')
  expect(redacted('data: "x"\n'.repeat(500_001))).toBe('undefined')
})

atNight(
  'content with 600,000 matches is not stored at level redacted, because there are too many to redact',
  () => {
    const mails = (count: number): string => 'a@b.example '.repeat(count)
    expect(redacted(mails(100_000))).toBe('[REDACTED] '.repeat(100_000))
    const many = mails(600_000)
    const forms = [
      () => many,
      () => `{"text":"${many}`,
      () => `data: ${JSON.stringify({ text: many })}\n\n`,
      () => JSON.stringify({ text: many }),
    ]
    for (const form of forms) expect(redacted(form())).toBe('undefined')
  },
)

test('redaction of stored content finds a match in a stream that has many more strings than a request may have', () => {
  const event = (text: string): string =>
    `data: ${JSON.stringify({ id: 'chatcmpl-1', model: 'm', choices: [{ index: 0, delta: { content: text } }] })}\n\n`
  const words = Array.from({ length: 30_000 }, (_, index) => event(` w${index % 977}`)).join('')
  const kept = redacted(words + event(' ann.lee@exa') + event('mple.com') + words)
  expect(kept === words + event(' [REDACTED]') + event('') + words).toBe(true)
})

test('a stream that ends in the middle of an event is redacted completely before it is stored', () => {
  const event = (text: string): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`
  const kept = redacted(`${event('ann.lee@exa')}${event('mple.com and more')}data: {"choices":[{"del`)
  expect(kept).not.toMatch(/ann\.lee|mple\.com/)
  expect(kept).toContain('and more')
  expect(redacted(`${event(`a\u2028b ${MAIL}`)}data: [DONE]\n\n`)).not.toContain(MAIL)
})

test('redaction of stored content finds a key that follows an escape in JSON that was cut off', () => {
  const key = `sk-proj-${'aB3'.repeat(20)}`
  expect(redacted(`{"content":"first\\n${key} and`)).not.toContain(key)
})

const AWS_KEY = 'AKIAIOSFODNN7EXAMPLE'
const delta = (text: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`

test.each([
  ['a comment', `: ${MAIL}\n\n${delta('x')}`],
  ['another field of an event', `event: ${MAIL}\n${delta('x')}`],
  ['an event that is no JSON', `${delta('x')}data: to ${MAIL}\n\n${delta('y')}`],
  ['a form of which one line looks like an event', `--b\r\n\r\ndata: 1\r\nto ${MAIL}\r\n--b--`],
])('redaction of stored content finds a match in %s', (_, text) => {
  expect(redacted(text)).toBe(text.replace(MAIL, '[REDACTED]'))
})

test.each([
  ['an event without data', 'data:\n\n'],
  ['an event that is no JSON', 'data: still working {\n\n'],
  ['an event of several lines', 'data: {\ndata: "choices": []}\n\n'],
])('redaction of stored content finds a match that is divided by %s', (_, between) => {
  const kept = redacted(`\uFEFF${delta('ann.lee@exa')}${between}${delta('mple.com')}data: [DONE]\n\n`)
  expect(kept).toBe(`\uFEFF${delta('[REDACTED]')}${between}${delta('')}data: [DONE]\n\n`)
})

test('redaction of stored content finds a match that is divided among the events of a turn, one a line', () => {
  const line = (text: string): string =>
    `{"type":"response.output_text.delta","item_id":"a","delta":"${text}","stream_id":"lane"}\n`
  expect(redacted(line('ann.lee@exa') + line('mple.com'))).toBe(line('[REDACTED]') + line(''))
  expect(redacted(`${line('to')}{"type":"response.completed","x":"ann.lee@exam`)).toBe(
    `${line('to')}[REDACTED]`,
  )
})

test('redaction of stored content finds a match that is divided into events of several lines', () => {
  const event = (text: string): string =>
    `data: {"choices":\r\ndata:[{"delta":{"content":"${text}"}}]}\r\n\r\n`
  expect(redacted(event('ann.lee@exa') + event('mple.com'))).toBe(event('[REDACTED]') + event(''))
})

test('redaction of a stored list that was cut off joins its complete elements, and replaces the last one', () => {
  const chunk = (text: string): string => JSON.stringify({ candidates: [{ content: { parts: [{ text }] } }] })
  const whole = `[${chunk('to ann.lee@exa')},\r\n${chunk('mple.com now')}`
  const kept = `[${chunk('to [REDACTED]')},\r\n${chunk(' now')}`
  expect(redacted(whole)).toBe(kept)
  expect(redacted(`${whole}\n,\n`)).toBe(`${kept}\n,\n`)
  for (const rest of [',{"cand', `,{"candidates":"${AWS_KEY}`])
    expect(redacted(whole + rest)).toBe(`${kept}[REDACTED]`)
  expect(redacted(`[{"text":"to ${MAIL}`)).toBe('[{"text":"to [REDACTED]')
})

test('redaction of stored content reads the JSON in the arguments of a tool call as a tool does', () => {
  const call = (inner: unknown): string => JSON.stringify({ function: { arguments: JSON.stringify(inner) } })
  const texts = [AWS_KEY, MAIL, CARD, 'DE89370400440532013000'].map((found) => ({
    path: 'a\\b',
    text: `x\n${found}`,
  }))
  expect(redacted(call(texts))).toBe(call(texts.map((one) => ({ ...one, text: 'x\n[REDACTED]' }))))
  expect(redacted(call({ text: `x\n${AWS_KEY}` }).slice(0, -5))).not.toContain(AWS_KEY)
  expect(redacted('{"arguments":"{\\"to\\":\\"ann.lee\\\\u0040example.com\\"}"}')).toBe(
    '{"arguments":"{\\"to\\":\\"[REDACTED]\\"}"}',
  )
  const pieces = JSON.stringify({ text: `x\n${AWS_KEY} y` }).match(/.{1,5}/g) ?? []
  const kept = redacted(pieces.map(delta).join(''))
  const joined = [...kept.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)].map(
    ([, text = '']) => JSON.parse(text) as string,
  )
  expect(JSON.parse(joined.join(''))).toEqual({ text: 'x\n[REDACTED] y' })
})

test('redaction of stored content finds the number of a card that is a number of JSON', () => {
  const use = (card: unknown) => JSON.stringify({ type: 'tool_use', input: { at: 1700000000000, card } })
  expect(redacted(use(4_111_111_111_111_111))).toBe(use('[REDACTED]'))
})

test('log probabilities are left out of stored content in which something was redacted, and only there', () => {
  const answer = (text: string, tokens: readonly string[], isOut = false): string =>
    JSON.stringify({
      choices: [
        {
          message: { content: text },
          logprobs: isOut ? null : { content: tokens.map((token) => ({ token })) },
        },
      ],
    })
  const clean = answer('as is', ['as', ' is'])
  expect(redacted(clean)).toBe(clean)
  expect(redacted(answer(MAIL, ['ann', '.lee@', 'example', '.com']))).toBe(answer('[REDACTED]', [], true))
  const schema = JSON.stringify({ logprobs: { description: MAIL } })
  expect(redacted(schema)).toBe('{"logprobs":{"description":"[REDACTED]"}}')
})

test('the tokens of a transcript and of a prompt are left out where something was redacted, and only there', () => {
  const transcript = (text: string, tokens: readonly number[] | null): string =>
    JSON.stringify({ text, segments: [{ id: 0, text, tokens }], usage: { tokens: 9 } })
  const clean = transcript('as is', [50_364, 4017])
  expect(redacted(clean)).toBe(clean)
  expect(redacted(transcript(MAIL, [50_364, 4017]))).toBe(transcript('[REDACTED]', null))
  const answer = (content: string, logprobs: unknown): string =>
    JSON.stringify({ prompt_logprobs: logprobs, choices: [{ message: { content } }] })
  expect(redacted(answer(MAIL, [null, { 4017: { logprob: -1, decoded_token: 'ann' } }]))).toBe(
    answer('[REDACTED]', null),
  )
})

test('redaction of a stored transcript finds a match over the borders of its segments and words', () => {
  const transcript = (text: string, ...pieces: readonly string[]): string =>
    JSON.stringify({
      text,
      segments: pieces.map((piece, id) => ({ id, text: piece })),
      words: pieces.map((word, start) => ({ word, start })),
    })
  expect(redacted(transcript(`pay ${CARD} now`, 'pay 4111 1111', ' 1111 1111', ' now'))).toBe(
    transcript('pay [REDACTED] now', 'pay [REDACTED]', '', ' now'),
  )
})

test.each(ESCAPED_TEXTS.map((text) => [text.name, text] as const))(
  'redaction of stored content finds secrets as guards do: %s',
  (_, text) => {
    for (const value of Object.values(SECRET_VALUES)) {
      const body = (content: string): object => ({ messages: [{ role: 'tool', content }] })
      const kept = redacted(JSON.stringify(body(withValue(text, value))))
      expect(JSON.parse(kept)).toEqual(body(withoutValue(text)))
      const streamed = withValue(text, value).match(/[^]{1,7}/g) ?? []
      const joined = [...redacted(streamed.map(delta).join('')).matchAll(/"content":("(?:[^"\\]|\\.)*")/g)]
      expect(joined.map(([, one = '']) => JSON.parse(one) as string).join('')).toBe(withoutValue(text))
    }
  },
)
