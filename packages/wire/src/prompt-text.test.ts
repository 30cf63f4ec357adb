import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { shapedDocuments } from '../../../test/generators/shaped-documents.ts'
import { lawRuns } from '../../../test/runner/tier.ts'
import { CHAT_PROMPT_RULES, COMPLETIONS_PROMPT_RULES } from './chat/index.ts'
import { CONVERSE_PROMPT_RULES } from './converse/index.ts'
import { EMBEDDINGS_PROMPT_RULES } from './embeddings/index.ts'
import { GEMINI_EMBED_PROMPT_RULES, GEMINI_PROMPT_RULES } from './gemini/index.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import { MESSAGES_PROMPT_RULES } from './messages/index.ts'
import { MODERATIONS_PROMPT_RULES } from './moderations/index.ts'
import type { PromptText } from './prompt-tokens.ts'
import { RERANK_PROMPT_RULES } from './rerank/index.ts'
import { RESPONSES_PROMPT_RULES } from './responses/index.ts'
import { type PromptRules, promptTextOf } from './prompt-text.ts'
import { indexOf, kindOfCode, outlineOf, ownerOfCode } from './shape/outline.ts'
import { type Kind, KINDS, type Owner, OWNERS } from './shape/vocabulary.ts'

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

const count = (body: Json, rules: PromptRules): PromptText =>
  promptTextOf(Buffer.from(JSON.stringify(body)), rules, 'm')

/** Kinds of described strings that are not a part of the prompt. Whether roles are depends on the dialect. */
const NOT_COUNTED: ReadonlySet<Kind> = new Set(['signature', 'mark', 'id', 'term', 'number'])
const ADDED = ' and a text behind it'

/** Strings that are values, and whether the shape says that each is a part of the prompt. */
function stringsOf(
  text: string,
  rules: PromptRules,
): { readonly end: number; readonly isCounted: boolean }[] {
  const scan = scanObject(Buffer.from(text), RESPONSE_LIMITS)
  const outline = outlineOf(scan, rules.shape)
  const strings: { end: number; isCounted: boolean }[] = []
  for (let node = 0; node < scan.tape.length; node += 3) {
    const isKey = scan.bytes.toString('latin1', scan.endOf(node), scan.endOf(node) + 1) === ':'
    const isType = node > 0 && scan.textOf(node - 3) === '"type"'
    if (scan.kindOf(node) !== 'string' || isKey || isType) continue
    const code = outline[indexOf(node)] as number
    const kind = KINDS[kindOfCode(code)] as Kind
    const owner = OWNERS[ownerOfCode(code)] as Owner
    // A setting of a wrong type is not counted, an unknown member is.
    if (kind === 'undescribed' && owner === 'provider') continue
    const isRead =
      owner !== 'provider' && !NOT_COUNTED.has(kind) && (kind !== 'role' || rules.countsRoles === true)
    strings.push({ end: scan.endOf(node), isCounted: isRead || owner === 'program' })
  }
  return strings
}

describe.each(Object.entries(FORMS))('the prompt of %s', (_, rules) => {
  test('a text added anywhere in a request increases its counted tokens, except where the shape says that the model does not read it', () => {
    fc.assert(
      fc.property(shapedDocuments(rules.shape), fc.nat(), (text, choice) => {
        const strings = stringsOf(text, rules)
        const place = strings[choice % Math.max(1, strings.length)]
        fc.pre(place !== undefined)
        const bytes = Buffer.from(text)
        const longer = Buffer.concat([
          bytes.subarray(0, place.end - 1),
          Buffer.from(ADDED),
          bytes.subarray(place.end - 1),
        ])
        const before = promptTextOf(bytes, rules, 'm')
        const after = promptTextOf(longer, rules, 'm')
        // Media are counted by their kind, which depends on words beside them, not by the length of their data or URL.
        fc.pre(
          before.chargedExtraTokens === before.extraTokens && after.chargedExtraTokens === after.extraTokens,
        )
        const grew = after.text.length > before.text.length || after.extraTokens > before.extraTokens
        expect(grew).toBe(place.isCounted)
      }),
      { numRuns: lawRuns(1_000) },
    )
  })
})

test('a member that the protocol does not define counts within a cache directive, too', () => {
  const prompt = (directive: Json): string =>
    promptTextOf(
      Buffer.from(
        JSON.stringify({
          messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control: directive }] }],
        }),
      ),
      CHAT_PROMPT_RULES,
      'm',
    ).text
  const plain = prompt({ type: 'ephemeral', ttl: '1h' })
  expect(plain).not.toContain('ephemeral')
  expect(prompt({ type: 'ephemeral', ttl: '1h', novelty: 'a text' })).toContain('a text')
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

test('the mark of a cache is not a part of the prompt', () => {
  const part = { type: 'input_text', text: TEXT, prompt_cache_breakpoint: { mode: 'explicit' } }
  const request = { input: [{ role: 'user', content: [part] }] }
  expect(count(request, RESPONSES_PROMPT_RULES).text).toBe(`user\n${TEXT}`)
})
