import { CHAT_REQUEST } from '@sluice/wire/chat'
import { GEMINI_REQUEST } from '@sluice/wire/gemini'
import { MESSAGES_REQUEST } from '@sluice/wire/messages'
import { RESPONSES_REQUEST } from '@sluice/wire/responses'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { knownRequests } from '../../test/fixtures/known-requests.ts'
import { type RequestContent, textsOfRequest } from './request-texts.ts'

const SHAPES = {
  chat: CHAT_REQUEST,
  gemini: GEMINI_REQUEST,
  messages: MESSAGES_REQUEST,
  responses: RESPONSES_REQUEST,
} as const
type Dialect = keyof typeof SHAPES
const DIALECTS = Object.keys(SHAPES) as Dialect[]

const contentOf = (body: Buffer, dialect: Dialect): RequestContent => {
  const content = textsOfRequest({ body, shapeOf: () => SHAPES[dialect], fields: [], url: '/' })
  if (!content) throw new Error('the request cannot be read')
  return content
}

function stringsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

test.each(DIALECTS)('every string of a request is one of its texts: random requests as %s', (dialect) => {
  const members = Object.keys(SHAPES[dialect].tables['Request'] ?? {})
  const request = fc.dictionary(fc.oneof(fc.constantFrom(...members), fc.string()), fc.jsonValue(), {
    noNullPrototype: true,
  })
  fc.assert(
    fc.property(request, (value) => {
      const { texts } = contentOf(Buffer.from(JSON.stringify(value)), dialect)
      expect(texts).toEqual(expect.arrayContaining([...stringsIn(value)]))
    }),
  )
})

/** A member that has a text of the conversation in every dialect, wherever it stands in messages. */
const TEXT = /"(?:text|thinking|arguments)"\s*:\s*("(?:[^"\\]|\\.)*")/g

test('what users and models said in known requests is a text of the conversation', () => {
  const known = knownRequests().filter(({ bytes }) => bytes.length < 1_000_000)
  expect(known.length).toBeGreaterThan(100)
  for (const { name, dialect, bytes } of known) {
    if (dialect === 'converse') continue
    const turns = Object.entries(JSON.parse(bytes.toString()) as object)
      .filter(([member]) => ['messages', 'input', 'contents'].includes(member))
      .map(([, value]) => JSON.stringify(value))
    const said = turns.flatMap((text) => [...text.matchAll(TEXT)].map(([, one = '']) => JSON.parse(one)))
    expect(contentOf(bytes, dialect).values, name).toEqual(expect.arrayContaining(said))
  }
})

test('the arguments of a tool call may have very many strings', () => {
  const call = {
    id: 'c',
    type: 'function',
    function: { name: 'f', arguments: JSON.stringify(Array(200_000).fill('')) },
  }
  const body = Buffer.from(
    JSON.stringify({ model: 'm', messages: [{ role: 'assistant', tool_calls: [call] }] }),
  )
  expect(contentOf(body, 'chat').values.filter((text) => text === '')).toHaveLength(200_000)
})
