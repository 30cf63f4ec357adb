import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../test/fixtures/pace.ts'
import { canonicalDigest } from './canonical-request.ts'
import { CHAT_REQUEST } from './chat/shape.ts'
import { GEMINI_REQUEST } from './gemini/shape.ts'
import { scanObject } from './json/json-scan.ts'
import { MESSAGES_REQUEST } from './messages/shape.ts'
import { RESPONSES_REQUEST } from './responses/shape.ts'
import type { Shape } from './shape/define-shape.ts'

const NOTHING: ReadonlySet<string> = new Set()

function digest(text: string, leftOut = NOTHING, shape: Shape = MESSAGES_REQUEST): string {
  return canonicalDigest(scanObject(Buffer.from(text)), shape, leftOut).toString('hex')
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Writes a value in another way each time: members in any order, with any whitespace and any escapes. */
function written(value: Json, next: () => number): string {
  const space = (): string => ['', ' ', '\n', '\t ', '\r\n'][next() % 5] ?? ''
  const padded = (text: string): string => space() + text + space()
  const quoted = (text: string): string =>
    `"${Array.from(text)
      .map((character) =>
        next() % 3 === 0
          ? [...Array(character.length).keys()]
              .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
              .join('')
          : JSON.stringify(character).slice(1, -1),
      )
      .join('')}"`
  if (typeof value === 'string') return padded(quoted(value))
  if (Array.isArray(value)) return padded(`[${value.map((one) => written(one, next)).join(',')}]`)
  if (typeof value !== 'object' || value === null) return padded(JSON.stringify(value))
  const members = Object.entries(value).map(([key, one]) => `${padded(quoted(key))}:${written(one, next)}`)
  for (let at = members.length - 1; at > 0; at--) {
    const other = next() % (at + 1)
    ;[members[at], members[other]] = [members[other] ?? '', members[at] ?? '']
  }
  return padded(`{${members.join(',')}}`)
}

const text = fc.string({ unit: 'binary', maxLength: 12 })
const json = fc.jsonValue({ stringUnit: 'binary', maxDepth: 4 }) as fc.Arbitrary<Json>
const request = fc.dictionary(text, json, { maxKeys: 6, noNullPrototype: true })
const randoms = fc.infiniteStream(fc.nat(10_000))

function drawn(stream: Iterator<number>): () => number {
  return () => stream.next().value as number
}

describe('the canonical digest of a request', () => {
  test('the digest of a request does not depend on the order of members, whitespace or escapes', () => {
    fc.assert(
      fc.property(request, randoms, (value, stream) => {
        expect(digest(written(value, drawn(stream)))).toBe(digest(JSON.stringify(value)))
      }),
    )
  })

  test('two requests have the same digest only if they are equal', () => {
    fc.assert(
      fc.property(request, request, (one, other) => {
        const sorted = (value: object): string => JSON.stringify(sortedMembers(value as Json))
        const isSame = sorted(one) === sorted(other)
        expect(digest(JSON.stringify(one)) === digest(JSON.stringify(other))).toBe(isSame)
      }),
    )
  })

  test('a change of any single value in a request changes its digest', () => {
    fc.assert(
      fc.property(request, fc.nat(1000), (value, at) => {
        const changed = withChange(value, at)
        if (changed) expect(digest(JSON.stringify(changed))).not.toBe(digest(JSON.stringify(value)))
      }),
    )
  })

  test('the digest of a request ignores its excluded top-level members, but not nested members with the same names', () => {
    const leftOut = new Set(['stream', 'metadata'])
    const plain = digest('{"a":1}', leftOut)
    expect(digest('{"stream":true,"a":1,"metadata":{"b":[1]}}', leftOut)).toBe(plain)
    expect(digest('{"str\\u0065am":true,"a":1}', leftOut)).toBe(plain)
    expect(digest('{"a":{"stream":true}}', leftOut)).not.toBe(digest('{"a":{"stream":false}}', leftOut))
  })

  test.each([
    ['the order of elements', '{"a":[1,2]}', '{"a":[2,1]}'],
    ['a number written otherwise', '{"a":1}', '{"a":1.0}'],
    ['a number and its text', '{"a":1}', '{"a":"1"}'],
    ['where one text ends', '{"a":["b","c"]}', '{"a":["b,c"]}'],
    ['a member and an element', '{"a":{"b":1}}', '{"a":["b",1]}'],
    ['a lone surrogate', '{"a":"\\ud800"}', '{"a":"\\ud801"}'],
    ['a repeated member', '{"a":{"b":1,"b":2}}', '{"a":{"b":2,"b":1}}'],
    ['the last byte of a long text', `{"a":"${'x'.repeat(50_000)}y"}`, `{"a":"${'x'.repeat(50_000)}z"}`],
  ])('the digests of two requests differ by %s', (_what, one, other) => {
    expect(digest(one)).not.toBe(digest(other))
  })

  test('the digest of a request ignores the billing line that Claude Code writes into each system prompt', () => {
    const block = (line: string): string =>
      JSON.stringify({
        system: [
          { type: 'text', text: line },
          { type: 'text', text: 'Be brief.' },
        ],
      })
    const asText = (line: string): string => JSON.stringify({ system: `${line}\nBe brief.` })
    for (const request of [block, asText]) {
      expect(digest(request('x-anthropic-billing-header: nonce=1;'))).toBe(
        digest(request('x-anthropic-billing-header: nonce=2;')),
      )
      expect(digest(request('x-other-header: 1'))).not.toBe(digest(request('x-other-header: 2')))
    }
    expect(digest(asText('x-anthropic-billing-header: nonce=1;'))).not.toBe(
      digest(asText('x-anthropic-billing-header: nonce=1;').replace('brief', 'short')),
    )
  })

  test.each<[string, Shape, (text: string) => object]>([
    ['chat', CHAT_REQUEST, (content) => ({ messages: [{ role: 'system', content }] })],
    ['gemini', GEMINI_REQUEST, (said) => ({ systemInstruction: { parts: [{ text: said }] } })],
    ['responses', RESPONSES_REQUEST, (instructions) => ({ instructions })],
  ])(
    'the digest of a request ignores the billing line in instructions in each protocol: %s',
    (_, shape, of) => {
      const one = (nonce: number): string =>
        digest(JSON.stringify(of(`x-anthropic-billing-header: nonce=${nonce};\nBe brief.`)), NOTHING, shape)
      expect(one(1)).toBe(one(2))
      const user = (nonce: number): string =>
        digest(
          JSON.stringify({ messages: [{ role: 'user', content: `x-anthropic-billing-header: ${nonce}` }] }),
        )
      expect(user(1)).not.toBe(user(2))
    },
  )

  test('the digest of a request with 190,000 texts takes linear time', async () => {
    const texts = (count: number): string =>
      `{"a":[${Array.from({ length: count }, () => '"text"').join(',')}]}`
    expect(await growthOf(190_000 / 8, texts, (text) => digest(text))).toBeLessThan(LINEAR_GROWTH)
  })
})

function sortedMembers(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortedMembers)
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 0 : value
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return members.map(([key, one]): Json => [key, '=', sortedMembers(one)])
}

/** The value with one leaf replaced; undefined if it has none. */
function withChange(value: { readonly [key: string]: Json }, at: number): object | undefined {
  const paths: (readonly (string | number)[])[] = []
  const walk = (one: Json, path: readonly (string | number)[]): void => {
    if (typeof one !== 'object' || one === null) paths.push(path)
    else for (const [key, below] of Object.entries(one)) walk(below, [...path, key])
  }
  walk(value, [])
  const path = paths[at % Math.max(1, paths.length)]
  if (!path) return undefined
  const copy = structuredClone(value) as Record<string, unknown>
  let holder = copy
  for (const step of path.slice(0, -1)) holder = holder[step] as Record<string, unknown>
  const last = String(path.at(-1))
  holder[last] = holder[last] === 'changed' ? 'again' : 'changed'
  return copy
}
