import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { shapedDocuments } from '../../../test/generators/shaped-documents.ts'
import { lawRuns } from '../../../test/runner/tier.ts'
import { CHAT_REQUEST, COMPLETIONS_REQUEST } from './chat/shape.ts'
import { CONVERSE_REQUEST } from './converse/shape.ts'
import { EMBEDDINGS_REQUEST } from './embeddings/shape.ts'
import { GEMINI_EMBED_REQUEST, GEMINI_REQUEST } from './gemini/shape.ts'
import type { FoundText } from './guarded-texts.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import type { ScannedObject } from './json/scanned-object.ts'
import { IMAGES_REQUEST, SPEECH_REQUEST } from './media/shape.ts'
import { MESSAGES_REQUEST } from './messages/shape.ts'
import { MODERATIONS_REQUEST } from './moderations-shape.ts'
import { requestTexts } from './request-texts.ts'
import { RERANK_REQUEST } from './rerank/shape.ts'
import { RESPONSES_REQUEST } from './responses/shape.ts'
import { defineShape, type Shape } from './shape/define-shape.ts'
import type { Members } from './shape/vocabulary.ts'

const SHAPES: Readonly<Record<string, Shape>> = {
  chat: CHAT_REQUEST,
  completions: COMPLETIONS_REQUEST,
  converse: CONVERSE_REQUEST,
  embeddings: EMBEDDINGS_REQUEST,
  gemini: GEMINI_REQUEST,
  'gemini embeddings': GEMINI_EMBED_REQUEST,
  images: IMAGES_REQUEST,
  messages: MESSAGES_REQUEST,
  moderations: MODERATIONS_REQUEST,
  rerank: RERANK_REQUEST,
  responses: RESPONSES_REQUEST,
  speech: SPEECH_REQUEST,
}

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

describe.each(Object.entries(SHAPES))('in requests of the shape %s', (_, shape) => {
  test('every string and name that does not look like a word of a protocol is found, once and in order', () => {
    fc.assert(
      fc.property(shapedDocuments(shape.tables), (text) => {
        const scan = scanned(text)
        const found = requestTexts(scan, shape).texts.map(({ from }) => from)
        expect(found).toEqual([...new Set(found)].toSorted((a, b) => a - b))
        const starts = new Set(found)
        const walk = (node: number): void => {
          const kind = scan.kindOf(node)
          if (kind === 'array') scan.elements(node).forEach(walk)
          else if (kind === 'string' && !WORD.test(String(scan.parse(node))))
            expect(starts, scan.textOf(node)).toContain(scan.startOf(node))
          else if (kind === 'object')
            for (const { key, node: value } of scan.entries(node)) {
              if (!NAME.test(key)) expect(starts, key).toContain(scan.startOf(value - 3))
              walk(value)
            }
        }
        walk(scan.root)
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
  ['responses', { input: [{ type: 'custom_tool_call', call_id: 'c', input: 'A' }] }, 'tool_arguments'],
  ['gemini', { contents: [{ parts: [{ functionResponse: { name: 'f', response: 'A' } }] }] }, 'tool_results'],
  ['responses', { input: [{ type: 'x', note: 'A' }] }, 'input'],
] as const)('a text belongs to the part of a call in which it stands (%s %j)', (dialect, body, place) => {
  const [found] = textsIn(body, SHAPES[dialect] as Shape).values()
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
