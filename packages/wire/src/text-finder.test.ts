import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../test/fixtures/pace.ts'
import { ANSWER_SHAPES, REQUEST_SHAPES } from '../../../test/fixtures/shapes.ts'
import { shapedDocuments } from '../../../test/generators/shaped-documents.ts'
import { lawRuns } from '../../../test/runner/tier.ts'
import { CHAT_ANSWER, CHAT_REQUEST, COMPLETIONS_REQUEST } from './chat/shape.ts'
import { EMBEDDINGS_REQUEST } from './embeddings/shape.ts'
import { GEMINI_ANSWER, GEMINI_REQUEST } from './gemini/shape.ts'
import type { FoundText } from './found-texts.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import type { ScannedObject } from './json/scanned-object.ts'
import { MESSAGES_REQUEST } from './messages/shape.ts'
import { answerTexts, requestTexts } from './text-finder.ts'
import { RERANK_ANSWER, RERANK_REQUEST } from './rerank/shape.ts'
import { RESPONSES_ANSWER, RESPONSES_EVENT } from './responses/shape.ts'
import { defineShape, type Shape } from './shape/define-shape.ts'
import type { Members } from './shape/vocabulary.ts'

/** `docs/guards.md: What is no text`: at most 64 letters, digits and `_ . : / * + -`, or a media type with parameters. */
const WORD = /^[\w.:/*+-]{0,64}$|^[\w.:/*+-]*(?:; ?[\w-]+=[\w.+-]+)+$/
const NAME = /^[\w.:/*+$-]{0,64}$/

const scanned = (body: unknown): ScannedObject =>
  scanObject(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), RESPONSE_LIMITS)

/** The texts of a request by what they say, in their order. */
function textsIn(body: unknown, shape: Shape): Map<unknown, FoundText> {
  const scan = scanned(body)
  const { texts } = requestTexts(scan, shape)
  return new Map(texts.map((one) => [JSON.parse(scan.bytes.toString('utf8', one.from, one.to)), one]))
}

/**
 * Names and strings of a document that do not look like a word of a protocol: all of them must be found. Members of the
 * response are left out that `REPEATED` names: of the document itself, or of its member `response`.
 */
function unusual(
  scan: ScannedObject,
  response?: 'document' | 'response',
): { readonly from: number; readonly text: string }[] {
  const found: { readonly from: number; readonly text: string }[] = []
  const walk = (node: number, isResponse: boolean): void => {
    const kind = scan.kindOf(node)
    if (kind === 'array') for (const element of scan.elements(node)) walk(element, isResponse)
    else if (kind === 'string' && !WORD.test(String(scan.parse(node))))
      found.push({ from: scan.startOf(node), text: scan.textOf(node) })
    else if (kind === 'object')
      for (const { key, node: value } of scan.entries(node)) {
        if (!NAME.test(key)) found.push({ from: scan.startOf(value - 3), text: key })
        const isBegun = node === scan.root && response === 'response' && key === 'response'
        if (!isResponse || !REPEATED.has(key)) walk(value, isBegun)
      }
  }
  walk(scan.root, response === 'document')
  return found
}

function expectInOrder(texts: readonly FoundText[]): ReadonlySet<number> {
  const starts = texts.map(({ from }) => from)
  expect(starts).toEqual([...new Set(starts)].toSorted((a, b) => a - b))
  return new Set(starts)
}

describe.each(Object.entries(REQUEST_SHAPES))('in requests of the shape %s', (_, shape) => {
  test('every string and name that does not look like a word of a protocol is found, once and in order', () => {
    fc.assert(
      fc.property(shapedDocuments(shape), (text) => {
        const scan = scanned(text)
        const starts = expectInOrder(requestTexts(scan, shape).texts)
        for (const one of unusual(scan)) expect(starts, one.text).toContain(one.from)
      }),
      { numRuns: lawRuns(1000) },
    )
  })
})

/** What stands in place of bytes and signatures, and is left out of answers: base64 of either alphabet, joined by dots. */
const BASE64 = /^"[\w+/=~.-]*"$/

/** Members of a response that repeat its request, or state how it ended. */
const REPEATED: ReadonlySet<string> = new Set(
  (
    'conversation error incomplete_details input instructions metadata prompt prompt_cache_key prompt_cache_options ' +
    'reasoning safety_identifier text tool_choice tools user'
  ).split(' '),
)

/** Where the response is in answers of the responses protocol. */
const RESPONSES: ReadonlyMap<string, 'document' | 'response'> = new Map([
  ['responses answer', 'document'],
  ['responses event', 'response'],
])

describe.each(Object.entries(ANSWER_SHAPES))('in answers of the shape %s', (name, shape) => {
  test('every string and name that does not look like a word or like base64 is found, unless it repeats another', () => {
    fc.assert(
      fc.property(shapedDocuments(shape), fc.boolean(), (text, signsReasoning) => {
        const scan = scanned(text)
        const { texts, repeating } = answerTexts(scan, shape, { signsReasoning })
        const starts = expectInOrder(texts)
        const isRepeated = (from: number): boolean =>
          repeating.some(([start, end]) => start <= from && from < end)
        for (const one of unusual(scan, RESPONSES.get(name)))
          if (!isRepeated(one.from) && !BASE64.test(one.text)) expect(starts, one.text).toContain(one.from)
      }),
      { numRuns: lawRuns(1000) },
    )
  })
})

const chat = (...messages: readonly object[]): object => ({ model: 'gpt-4', messages })

test('a member that the shape does not describe is a text, even where it looks like a word of the protocol', () => {
  const body = { ...chat({ role: 'user', content: 'Hi', x_note: { type: 'sk-4711' } }), x_more: ['auto'] }
  const found = textsIn(body, CHAT_REQUEST)
  expect([...found.keys()]).toEqual(['Hi', 'sk-4711', 'auto'])
  // The same request, by a shape that lacks a member.
  const { name: _, ...rest } = CHAT_REQUEST.tables['Message'] as Members<string>
  const broken = defineShape<string>({ ...CHAT_REQUEST.tables, Message: rest })
  const named = chat({ role: 'user', name: 'ann', content: 'Hi' })
  expect([...textsIn(named, broken).keys()]).toEqual([...textsIn(named, CHAT_REQUEST).keys()])
})

test('words of the protocol, ids and names of tools are left out only where they look like one', () => {
  const body = (word: string): object => ({
    model: word,
    messages: [{ role: word, content: [{ type: word, text: 'Hi', cache_control: { type: word } }] }],
    reasoning_effort: word,
    tools: [{ type: word, function: { name: word } }],
  })
  expect([...textsIn(body('auto'), CHAT_REQUEST).keys()]).toEqual(['Hi'])
  expect(requestTexts(scanned(body('two words')), CHAT_REQUEST).texts).toHaveLength(8)
})

test.each([
  ['chat', chat({ role: 'tool', tool_call_id: 'c', content: 'The result' }), 'tool_results'],
  [
    'chat',
    chat({
      role: 'assistant',
      tool_calls: [{ id: 'c', function: { name: 'f', arguments: 'The arguments' } }],
    }),
    'tool_arguments',
  ],
  [
    'messages',
    {
      messages: [
        { role: 'user', content: [{ type: 'tool_result', content: [{ type: 'text', text: 'A' }] }] },
      ],
    },
    'tool_results',
  ],
  [
    'messages',
    { messages: [{ role: 'user', content: [{ type: 'tool_result', content: [{ type: 'x', note: 'A' }] }] }] },
    'tool_results',
  ],
  [
    'messages',
    { messages: [{ role: 'assistant', content: [{ type: 'tool_use', input: {}, note: 'A' }] }] },
    'tool_arguments',
  ],
  ['responses', { input: [{ type: 'function_call_output', call_id: 'c', output: 'A' }] }, 'tool_results'],
  [
    'responses',
    { input: [{ type: 'function_call_output', output: [{ type: 'input_text', role: 'user', text: 'A' }] }] },
    'tool_results',
  ],
  ['chat', chat({ role: 'tool', tool_call_id: 'c', content: 4711 }), 'tool_results'],
  [
    'chat',
    chat({ role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: 4711 }] }),
    'tool_results',
  ],
  ['responses', { input: [{ type: 'custom_tool_call', call_id: 'c', input: 'A' }] }, 'tool_arguments'],
  ['gemini', { contents: [{ parts: [{ functionResponse: { name: 'f', response: 'A' } }] }] }, 'tool_results'],
  ['responses', { input: [{ type: 'x', note: 'A' }] }, 'input'],
] as const)('a text belongs to the part of a call in which it stands (%s %j)', (dialect, body, place) => {
  const [found] = textsIn(body, REQUEST_SHAPES[dialect] as Shape).values()
  expect(found?.place).toBe(place)
})

test('of what users and models choose, names and numbers are checked too', () => {
  const body = {
    messages: [{ role: 'assistant', content: [{ type: 'tool_use', input: { to: 4711, of: { a: 'b' } } }] }],
    metadata: { user_id: 'u1' },
    tools: [{ name: 'f', input_schema: { type: 'object', properties: { city: {} }, required: ['city'] } }],
  }
  const scan = scanned(body)
  const { texts } = requestTexts(scan, MESSAGES_REQUEST)
  expect(texts.map(({ from, to }) => scan.bytes.toString('utf8', from, to))).toEqual([
    '"to"',
    '4711',
    '"of"',
    '"a"',
    '"b"',
    '"user_id"',
    '"u1"',
    '"city"',
    '"city"',
  ])
  expect(texts.map(({ isName }) => isName)).toEqual([...Array<boolean>(7).fill(false), true, true])
})

const thought = (role: string, more: object): object => ({
  messages: [{ role, content: [{ type: 'thinking', thinking: 'So be it', ...more }] }],
})
test.each([
  ['a turn of a model', thought('assistant', { signature: 'c2lnbmF0dXJl' }), MESSAGES_REQUEST, true],
  ['a turn of a user', thought('user', { signature: 'c2lnbmF0dXJl' }), MESSAGES_REQUEST, false],
  [
    'a turn without a role',
    { messages: [{ content: [{ type: 'thinking', thinking: 'So be it', signature: 'c2ln' }] }] },
    MESSAGES_REQUEST,
    false,
  ],
  [
    'the system prompt',
    { system: [{ type: 'thinking', thinking: 'So be it', signature: 'c2ln' }] },
    MESSAGES_REQUEST,
    false,
  ],
  ['no signature', thought('assistant', { signature: '' }), MESSAGES_REQUEST, false],
  ['a text as signature', thought('assistant', { signature: 'not signed' }), MESSAGES_REQUEST, false],
  [
    'reasoning of a chat client',
    chat({
      role: 'assistant',
      reasoning_details: [{ type: 'reasoning.text', text: 'So be it', signature: 'c2ln' }],
    }),
    CHAT_REQUEST,
    true,
  ],
  [
    'reasoning in the turn of a user of chat',
    chat({
      role: 'user',
      reasoning_details: [{ type: 'reasoning.text', text: 'So be it', signature: 'c2ln' }],
    }),
    CHAT_REQUEST,
    false,
  ],
  [
    'a thought of Gemini, whose signature does not cover its text',
    { contents: [{ role: 'model', parts: [{ thought: true, text: 'So be it', thoughtSignature: 'c2ln' }] }] },
    GEMINI_REQUEST,
    false,
  ],
])(
  'reasoning with a signature counts as signed in turns of a model alone: %s',
  (_, body, shape, isSigned) => {
    expect(textsIn(body, shape as Shape).get('So be it')?.isSigned).toBe(isSigned)
  },
)

test('a file is read with the media type and the name that its object or the one around it states', () => {
  const source = { type: 'base64', media_type: 'text/plain', data: 'aGVsbG8=' }
  const body = { messages: [{ role: 'user', content: [{ type: 'document', title: 'a.txt', source }] }] }
  expect(textsIn(body, MESSAGES_REQUEST).get('aGVsbG8=')).toMatchObject({
    kind: 'media',
    file: { mediaType: 'text/plain', name: 'a.txt' },
  })
})

test('token ids in place of a text are noted', () => {
  const idsIn = (body: unknown, shape: Shape): boolean => requestTexts(scanned(body), shape).hasTokenIds
  expect(idsIn({ input: [[1, 2]] }, EMBEDDINGS_REQUEST)).toBe(true)
  expect(idsIn({ prompt: [1, 2] }, COMPLETIONS_REQUEST)).toBe(true)
  expect(idsIn({ prompt: 'x', prompt_token_ids: [1] }, COMPLETIONS_REQUEST)).toBe(true)
  expect(idsIn({ input: ['1', '2'], dimensions: 5 }, EMBEDDINGS_REQUEST)).toBe(false)
})

const OPEN = { signsReasoning: false }
const answered = (body: unknown, shape: Shape, signsReasoning = false): Map<unknown, FoundText> => {
  const scan = scanned(body)
  const { texts } = answerTexts(scan, shape, { signsReasoning })
  return new Map(texts.map((one) => [JSON.parse(scan.bytes.toString('utf8', one.from, one.to)), one]))
}

test('what a response repeats of its request is left out, and what the model generated is not', () => {
  const response = {
    object: 'response',
    instructions: 'Be brief, please',
    tools: [{ type: 'function', description: 'A tool' }],
    metadata: { 'a name': 'a value' },
    output: [{ type: 'x_item', note: 'A note', content: [{ type: 'output_text', text: 'An answer' }] }],
  }
  expect([...answered(response, RESPONSES_ANSWER).keys()]).toEqual(['A note', 'An answer'])
  const listed = { type: 'mcp_list_tools', tools: [{ name: 'f', input_schema: { default: 'A default' } }] }
  expect([...answered({ output: [listed] }, RESPONSES_ANSWER).keys()]).toEqual(['A default'])
  const event = { type: 'response.completed', response }
  expect([...answered(event, RESPONSES_EVENT).keys()]).toEqual(['A note', 'An answer'])
})

test.each([
  [{ type: 'response.x_call.done', code: 'sk-4711', param: 'sk-4712' }, RESPONSES_EVENT],
  [{ modelStatus: { modelStage: 'DEPRECATED', message: 'sk-4711' } }, GEMINI_ANSWER],
  [
    { candidates: [{ groundingMetadata: { searchEntryPoint: { sdkBlob: 'W1sic2stNDcxMSJdXQ==' } } }] },
    GEMINI_ANSWER,
  ],
  [{ meta: { api_version: { version: '2' }, warnings: ['sk-4711'] } }, RERANK_ANSWER],
])('what is no word of the protocol is a text, even where it looks like one (%j)', (body, shape) => {
  expect([...answered(body, shape).keys()].join(' ')).toMatch(
    /^(?:sk-4711(?: sk-4712)?|W1sic2stNDcxMSJdXQ==)$/,
  )
})

test('the fields of documents that a ranking reads are names that users chose', () => {
  const body = { query: 'Hi', documents: [{ salary: 'low' }], rank_fields: ['salary'] }
  expect([...textsIn(body, RERANK_REQUEST).keys()]).toEqual(['Hi', 'low', 'salary'])
})

test('counts, bytes and signatures are left out where they look like what they should be', () => {
  const message = (text: string): object => ({
    choices: [
      {
        message: { audio: { data: text }, reasoning_details: [{ type: 'reasoning.text', signature: text }] },
      },
    ],
    usage: { prompt_tokens: 1, details: { tier: text } },
  })
  expect([...answered(message('c2lnbmVk'), CHAT_ANSWER).keys()]).toEqual([])
  expect(answerTexts(scanned(message('a secret, said')), CHAT_ANSWER, OPEN).texts).toHaveLength(3)
})

test('the token with which Gemini continues an answer is no text, longer than an id though it is', () => {
  const continuationToken = 'dG9rZW4x'.repeat(10)
  expect([...answered({ candidates: [{ continuationToken }] }, GEMINI_ANSWER).keys()]).toEqual([])
  expect(textsIn({ continuationToken }, GEMINI_REQUEST).get(continuationToken)?.kind).toBe('sealed')
})

test('what repeats a text token by token is not a text, and stated with what takes its place', () => {
  const choices = [
    { text: 'Hi', logprobs: { tokens: ['H', 'i'] } },
    { logprobs: [1] },
    { message: { logprobs: [2] }, prompt_logprobs: [3] },
  ]
  const scan = scanned({ choices, prompt_logprobs: [4] })
  const { texts, repeating } = answerTexts(scan, CHAT_ANSWER, OPEN)
  expect(texts).toHaveLength(1)
  expect(repeating.map(([from, to, instead]) => [scan.bytes.toString('utf8', from, to), instead])).toEqual([
    ['{"tokens":["H","i"]}', 'null'],
    ...[1, 2, 3, 4].map((number) => [`[${number}]`, '[]']),
  ])
})

test.each([
  [{ message: { reasoning_content: 'So be it' } }, true, true],
  [{ message: { reasoning_content: 'So be it' } }, false, false],
  [{ message: { reasoning_details: [{ text: 'So be it', signature: 'c2lnbmVk' }] } }, false, true],
  [{ message: { content: 'So be it' } }, true, false],
])(
  'of answers, reasoning is signed if its provider signs all or a signature stands beside it (%j)',
  (choice, signs, isSigned) => {
    expect(answered({ choices: [choice] }, CHAT_ANSWER, signs).get('So be it')?.isSigned).toBe(isSigned)
  },
)

test('of answers of Gemini, no signature covers the thought beside it', () => {
  const thought = { text: 'So be it', thought: true, thoughtSignature: 'c2lnbmVk' }
  const answer = { candidates: [{ content: { parts: [thought] } }] }
  expect(answered(answer, GEMINI_ANSWER, false).get('So be it')?.isSigned).toBe(false)
})

test('what a provider adds to a delta is whole, and everything else in it comes in pieces', () => {
  const delta = {
    content: 'a b',
    x_note: { y: 'c d' },
    annotations: [{ x_title: 'e f' }],
    citations: ['g h'],
  }
  const found = answered({ choices: [{ delta }] }, CHAT_ANSWER)
  expect([...found].map(([text, { isWhole }]) => [text, isWhole])).toEqual([
    ['a b', false],
    ['c d', false],
    ['e f', true],
    ['g h', true],
  ])
})

/** A body in which a member with a new name each time, or the same one, is repeated in one object. */
const repeated =
  (before: string, member: (index: number) => string, after: string) =>
  (count: number): ScannedObject =>
    scanned(before + Array.from({ length: count }, (_, index) => member(index)).join('') + after)

test.each([
  [
    'of a message that the shape does not describe',
    CHAT_REQUEST,
    repeated('{"messages":[{"role":"user"', (index) => `,"a${index}":"b c"`, '}]}'),
  ],
  [
    'of reasoning, beside a signature',
    MESSAGES_REQUEST,
    repeated(
      '{"messages":[{"role":"assistant","content":[{"type":"thinking"',
      () => ',"thinking":"b c"',
      ',"signature":"QUJD"}]}]}',
    ),
  ],
  [
    'of files in one object',
    CHAT_REQUEST,
    repeated(
      '{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.txt"',
      () => ',"file_data":"QUJD"',
      '}}]}]}',
    ),
  ],
] as const)(
  'texts of a request are found in time proportional to their number: members %s',
  async (_, shape, body) => {
    const find = (scan: ScannedObject): unknown => requestTexts(scan, shape)
    expect(await growthOf(400, body, find)).toBeLessThan(LINEAR_GROWTH)
  },
)

test('texts of an answer are found in time proportional to their number, also where the shape does not describe them', async () => {
  const body = repeated('{"choices":[{"message":{"content":"a"', (index) => `,"a${index}":"b c"`, '}}]}')
  const reading = { signsReasoning: false }
  const find = (scan: ScannedObject): unknown => answerTexts(scan, CHAT_ANSWER, reading)
  expect(await growthOf(400, body, find)).toBeLessThan(LINEAR_GROWTH)
})
