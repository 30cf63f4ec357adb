import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { CHAT_PROMPT_RULES, COMPLETIONS_PROMPT_RULES } from './chat/index.ts'
import { CONVERSE_PROMPT_RULES } from './converse/index.ts'
import { EMBEDDINGS_PROMPT_RULES } from './embeddings/index.ts'
import { GEMINI_EMBED_PROMPT_RULES, GEMINI_PROMPT_RULES } from './gemini/index.ts'
import { MESSAGES_PROMPT_RULES } from './messages/index.ts'
import { MODERATIONS_PROMPT_RULES } from './moderations.ts'
import type { PromptText } from './prompt-tokens.ts'
import { RERANK_PROMPT_RULES } from './rerank/index.ts'
import { RESPONSES_PROMPT_RULES } from './responses/index.ts'
import { type PromptRules, promptTextOf } from './prompt-text.ts'

const FORMS: Readonly<Record<string, PromptRules>> = {
  chat: CHAT_PROMPT_RULES,
  completions: COMPLETIONS_PROMPT_RULES,
  converse: CONVERSE_PROMPT_RULES,
  embeddings: EMBEDDINGS_PROMPT_RULES,
  gemini: GEMINI_PROMPT_RULES,
  'gemini embeddings': GEMINI_EMBED_PROMPT_RULES,
  messages: MESSAGES_PROMPT_RULES,
  moderations: MODERATIONS_PROMPT_RULES,
  rerank: RERANK_PROMPT_RULES,
  responses: RESPONSES_PROMPT_RULES,
}

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** A text in a request: its path, and whether a level excludes a member on this path from the prompt. */
interface Place {
  readonly path: readonly (string | number)[]
  readonly isListed: boolean
}

/** Members with the data or the URL of media. */
const MEDIA_DATA: ReadonlySet<string | number | undefined> = new Set(['data', 'fileUri', 'bytes', 'url'])

const count = (body: Json, levels: PromptRules): PromptText =>
  promptTextOf(Buffer.from(JSON.stringify(body)), levels, 'm')

const anyJson: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.string({ maxLength: 8 }),
    fc.constantFrom<Json>(1, true, null),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.string({ minLength: 1, maxLength: 6 }), tie('value'), {
      maxKeys: 2,
      noNullPrototype: true,
    }),
  ),
})).value

/** Objects of a level, with a few of the members that it knows and one that it does not. */
function requests(levels: PromptRules, name = 'request', depth = 4): fc.Arbitrary<Json> {
  const level = levels.levels[name]
  if (!level || depth === 0) return fc.string({ minLength: 1, maxLength: 6 })
  const below = (reading: string): fc.Arbitrary<Json> => {
    const one = requests(levels, reading, depth - 1)
    return reading === 'json' ? anyJson : fc.oneof(one, fc.array(one, { maxLength: 2 }))
  }
  const names = [...Object.keys(level.read), ...Object.keys(level.notPrompt), 'x_unknown']
  return fc
    .subarray(names, { minLength: 1, maxLength: Math.min(4, names.length) })
    .chain((chosen) =>
      fc.record(
        Object.fromEntries(
          chosen.map((one) => [one, one in level.read ? below(String(level.read[one])) : anyJson] as const),
        ),
        { noNullPrototype: true },
      ),
    )
}

function placesIn(value: Json, levels: PromptRules): Place[] {
  const places: Place[] = []
  const visit = (node: Json, path: Place['path'], reading: string, isListed: boolean): void => {
    if (typeof node === 'string') places.push({ path, isListed })
    else if (Array.isArray(node)) node.forEach((one: Json, n) => visit(one, [...path, n], reading, isListed))
    else if (typeof node === 'object' && node !== null) {
      const level = levels.levels[reading]
      for (const [name, one] of Object.entries(node)) {
        const isHere = level !== undefined && Object.hasOwn(level.notPrompt, name)
        const next = level && Object.hasOwn(level.read, name) ? String(level.read[name]) : 'json'
        visit(one, [...path, name], next, isListed || isHere)
      }
    }
  }
  visit(value, [], 'request', false)
  return places
}

function withText(value: Json, [first, ...rest]: Place['path'], text: string): Json {
  if (first === undefined) return `${value as string}${text}`
  if (Array.isArray(value))
    return value.map((one: Json, n) => (n === first ? withText(one, rest, text) : one))
  const object = value as Readonly<Record<string, Json>>
  return { ...object, [first]: withText(object[first] as Json, rest, text) }
}

describe.each(Object.entries(FORMS))('the prompt of %s', (_, levels) => {
  test('a text added anywhere in a request increases its counted tokens, except in members that are listed as not counted', () => {
    fc.assert(
      fc.property(requests(levels), fc.nat(), (request, choice) => {
        const places = placesIn(request, levels)
        const place = places[choice % Math.max(1, places.length)]
        fc.pre(place !== undefined)
        const before = count(request, levels)
        // Media are counted by their kind, not by the length of their data or URL.
        const hasMedia = before.chargedExtraTokens > before.extraTokens
        fc.pre(!hasMedia || !MEDIA_DATA.has(place.path.findLast((name) => typeof name === 'string')))
        const after = count(withText(request, place.path, ' and a text behind it'), levels)
        const grew =
          after.text.length > before.text.length || after.chargedExtraTokens > before.chargedExtraTokens
        expect(grew).toBe(!place.isListed)
      }),
      { numRuns: lawRuns(1_000) },
    )
  })
})

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const TEXT = 'A text that a model reads.'
const FILE = `data:text/plain;base64,${base64(TEXT)}`

describe('text files', () => {
  const chat = (part: object): Json => ({ messages: [{ role: 'user', content: [part as Json] }] })
  const responses = (part: object): Json => ({ input: [{ role: 'user', content: [part as Json] }] })
  test.each<[string, Json, PromptRules]>([
    ['chat', chat({ type: 'file', file: { file_data: FILE } }), CHAT_PROMPT_RULES],
    [
      'chat, by its name',
      chat({ type: 'file', file: { file_data: base64(TEXT), filename: 'a.md' } }),
      CHAT_PROMPT_RULES,
    ],
    ['chat, in place of an image', chat({ type: 'image_url', image_url: { url: FILE } }), CHAT_PROMPT_RULES],
    [
      'chat, in the clear',
      chat({ type: 'file', file: { file_data: `data:text/csv,${TEXT.replaceAll(' ', '%20')}` } }),
      CHAT_PROMPT_RULES,
    ],
    ['responses', responses({ type: 'input_file', file_data: FILE, filename: 'a' }), RESPONSES_PROMPT_RULES],
    [
      'messages',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'document', source: { type: 'base64', media_type: 'text/plain', data: base64(TEXT) } },
            ],
          },
        ],
      },
      MESSAGES_PROMPT_RULES,
    ],
    [
      'gemini',
      { contents: [{ parts: [{ inline_data: { mime_type: 'application/json', data: base64(TEXT) } }] }] },
      GEMINI_PROMPT_RULES,
    ],
    [
      'converse',
      {
        messages: [
          { content: [{ document: { format: 'txt', name: 'a', source: { bytes: base64(TEXT) } } }] },
        ],
      },
      CONVERSE_PROMPT_RULES,
    ],
  ])('a text file in a prompt is decoded from base64, and its text is counted: %s', (_, request, levels) => {
    const { text, chargedExtraTokens } = count(request, levels)
    expect(text).toContain(TEXT)
    expect(text).not.toContain(base64(TEXT))
    expect(chargedExtraTokens).toBeLessThan(100)
  })
})

test('a picture in a prompt counts as a fixed number of tokens, and a caption beside its data counts as text', () => {
  const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(9_000)}` } }
  const ask = (part: object): PromptText =>
    count({ messages: [{ role: 'user', content: [part as Json] }] }, CHAT_PROMPT_RULES)
  const { text, extraTokens, chargedExtraTokens } = ask({ ...picture, caption: TEXT })
  expect(text).toBe(`user\ncaption\n${TEXT}`)
  expect([extraTokens, chargedExtraTokens]).toEqual([3 + 4 + 1_000, 3 + 4 + 10_000])
})

test('escaped characters of a prompt are counted as the characters, and two members with one name are both counted', () => {
  const body = String.raw`{"tools":[{"name":"\u6f22","name":"caf\u00e9 \\u0041"}]}`
  expect(promptTextOf(Buffer.from(body), CHAT_PROMPT_RULES, '').text).toBe(
    String.raw`[{"name":"漢","name":"café \\u0041"}]`,
  )
})

test('encrypted reasoning in a prompt counts by the estimated length of its plain text, four bytes to a token', () => {
  const data = 'A'.repeat(1_600)
  const block = { type: 'redacted_thinking', data }
  const request = { messages: [{ role: 'assistant', content: [block] }] }
  expect(count(request, MESSAGES_PROMPT_RULES)).toMatchObject({ text: '', extraTokens: 3 + 4 + 300 })
})
