import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { conversationOf } from '../../../test/samples/conversation.ts'
import { growthOf, LINEAR_GROWTH } from '../../../test/fixtures/pace.ts'
import { lawRuns } from '../../../test/runner/tier.ts'
import type { Part, Turn } from './conversation.ts'
import { serverRulesOf } from './server-rules.ts'
import { callIdsOf, callRestorer, withAcceptedNames, withRestoredCalls } from './wire-names.ts'

const PROTOCOLS = ['chat', 'responses', 'messages', 'converse', 'gemini'] as const
const NAME = {
  chat: /^[\w-]{1,64}$/,
  responses: /^[\w-]{1,64}$/,
  messages: /^[\w-]{1,64}$/,
  converse: /^[\w-]{1,64}$/,
  gemini: /^[A-Za-z_][\w.:-]{0,63}$/,
} as const
const ID = { ...NAME, chat: /^[^]{1,40}$/, responses: /^[^]{1,64}$/, gemini: /^[^]+$/ } as const

/** Names that are alike: with the same beginning, and with the form that the gateway gives. */
const name = fc
  .oneof(
    fc.string({ minLength: 1, maxLength: 90, unit: fc.constantFrom('a', '.', '_', '/', ':', '1', 'é') }),
    fc.constantFrom('files.read', 'files/read', 'files_read', `${'x'.repeat(70)}1`, `${'x'.repeat(70)}2`),
  )
  .chain((given) => fc.constantFrom(given, sentName(given, 'messages')))

function sentName(given: string, protocol: (typeof PROTOCOLS)[number]): string {
  const tools = [{ name: given, description: undefined, schema: undefined, strict: undefined }]
  const { conversation } = withAcceptedNames(conversationOf({ tools }), protocol, { hasShortIds: false })
  return conversation.tools[0]?.name ?? ''
}

describe.each(PROTOCOLS)('names that providers of %s accept', (protocol) => {
  test.each([false, true])(
    'are different for different names, and lead back to them; short ids: %s',
    (hasShortIds) => {
      fc.assert(
        fc.property(fc.uniqueArray(name, { maxLength: 12 }), (names) => {
          const tools = names.map((one) => ({
            name: one,
            description: undefined,
            schema: undefined,
            strict: undefined,
          }))
          const calls = names.map((id) => ({ kind: 'tool-call', id, name: id, input: '{}' }) as const)
          const results = names.map(
            (callId) => ({ kind: 'tool-result', callId, parts: [], isError: false }) as const,
          )
          const turns = [
            { role: 'assistant', parts: calls },
            { role: 'user', parts: results },
          ] as const
          const given = conversationOf({ tools, turns })
          const { conversation, toolName = (wire: string) => wire } = withAcceptedNames(given, protocol, {
            hasShortIds,
          })
          const sent = conversation.tools.map((tool) => tool.name)
          expect(new Set(sent).size).toBe(names.length)
          for (const one of sent) expect(one).toMatch(NAME[protocol])
          expect(sent.map((one) => toolName(one))).toEqual(names)
          const ids = conversation.turns[0]?.parts.map((part) => (part.kind === 'tool-call' ? part.id : ''))
          expect(new Set(ids).size).toBe(names.length)
          for (const id of ids ?? []) expect(id).toMatch(hasShortIds ? /^[A-Za-z\d]{9}$/ : ID[protocol])
          expect(conversation.turns[1]?.parts.map((part) => 'callId' in part && part.callId)).toEqual(ids)
          const [first] = given.turns
          const shorter = { ...given, turns: [{ ...first, parts: calls.slice(0, 2) }] } as typeof given
          const before = withAcceptedNames(shorter, protocol, { hasShortIds }).conversation.turns[0]?.parts
          expect(conversation.turns[0]?.parts.slice(0, 2)).toEqual(before)
        }),
        { numRuns: lawRuns(200) },
      )
    },
  )

  test.each([
    { id: 'call_0', hasShortIds: false },
    { id: '', hasShortIds: false },
    { id: 'call_0', hasShortIds: true },
  ])(
    'are different for calls with the same id, and results stay with their calls: %j',
    ({ id, hasShortIds }) => {
      const called = (...names: string[]): Turn => ({
        role: 'assistant',
        parts: names.map((name) => ({ kind: 'tool-call', id, name, input: '{}' })),
      })
      const answered = (...texts: string[]): Turn => ({
        role: 'user',
        parts: texts.map((text) => ({
          kind: 'tool-result',
          callId: id,
          parts: [{ kind: 'text', text }],
          isError: false,
        })),
      })
      const turns = [
        called('a', 'b'),
        answered('a', 'b'),
        called('c'),
        answered('c'),
        called('unanswered'),
        { role: 'user', parts: [{ kind: 'text', text: 'Go on.' }] } as const,
        called('d'),
        answered('d'),
        answered('again'),
        called('e'),
        called('f'),
        answered('e', 'f'),
      ]
      const sent = (given: readonly Turn[]): readonly Part[] =>
        withAcceptedNames(conversationOf({ turns: given }), protocol, {
          hasShortIds,
        }).conversation.turns.flatMap(({ parts }) => parts)
      const parts = sent(turns)
      const calls = parts.filter((part) => part.kind === 'tool-call')
      const results = parts.filter((part) => part.kind === 'tool-result')
      expect(new Set(calls.map((call) => call.id)).size).toBe(calls.length)
      const accepted = protocol === 'gemini' ? /^/ : ID[protocol]
      for (const call of calls) expect(call.id).toMatch(hasShortIds ? /^[A-Za-z\d]{9}$/ : accepted)
      const idOf = (text: string): string | undefined =>
        results.find((result) => JSON.stringify(result.parts).includes(`"${text}"`))?.callId
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
        expect(calls.find((call) => call.name === name)?.id).toBe(idOf(name))
      expect(idOf('again')).toBe(idOf('d'))
      expect(sent(turns.slice(0, 4))).toEqual(parts.slice(0, 6))
    },
  )

  test('are the names themselves where the providers accept them', () => {
    const turns = [
      { role: 'assistant', parts: [{ kind: 'tool-call', id: 'call_1', name: 'look', input: '{}' }] },
    ] as const
    const conversation = conversationOf({ turns, toolChoice: { kind: 'tool', name: 'look' } })
    expect(withAcceptedNames(conversation, protocol, { hasShortIds: false })).toEqual({ conversation })
  })
})

test('names of tools for Moonshot begin with a letter or an underscore, and have at least three characters', () => {
  const names = ['1c-check', '-x', 'f', 'go', 'look', '_ok']
  const tools = names.map((name) => ({ name, description: undefined, schema: undefined, strict: undefined }))
  const server = serverRulesOf({ base_url: 'https://api.moonshot.ai/v1' }, 'kimi-k3')
  const { conversation, toolName } = withAcceptedNames(conversationOf({ tools }), 'chat', server)
  const sent = conversation.tools.map(({ name }) => name)
  for (const name of sent) expect(name).toMatch(/^[a-zA-Z_][a-zA-Z0-9-_]{2,63}$/)
  expect(sent.slice(4)).toEqual(['look', '_ok'])
  expect(sent.map((name) => toolName?.(name))).toEqual(names)
})

test('calls of a reply with the same id get different ones in a time in proportion to their number', async () => {
  const restored = (size: number): string[] => {
    const restore = callRestorer(['a', 'a_3', 'b'])
    return Array.from({ length: size }, () => restore({ id: 'a', name: 'f' }).id)
  }
  expect(restored(3)).toEqual(['a_2', 'a_4', 'a_5'])
  expect(await growthOf(1_000, (size) => size, restored)).toBeLessThan(LINEAR_GROWTH)
})

test('calls in all choices of a reply get the names of the client, and different ids', () => {
  const call = (id: string, name: string) => ({ kind: 'tool-call', id, name, input: '{}' }) as const
  const choice = { parts: [call('a', 'wire')], stop: { reason: 'tool-calls' } } as const
  const reply = { id: 'r', model: 'm', usage: undefined, ...choice, others: [choice] }
  expect(
    withRestoredCalls(
      reply,
      callRestorer([], (wire) => `${wire} of client`),
    ),
  ).toMatchObject({
    parts: [call('a', 'wire of client')],
    others: [{ parts: [call('a_2', 'wire of client')] }],
  })
})

/** The ids that the provider gets for calls with these ids. */
function sentIds(ids: readonly string[]): string[] {
  const calls = ids.map((id) => ({ kind: 'tool-call', id, name: 'f', input: '{}' }) as const)
  const given = conversationOf({ turns: [{ role: 'assistant', parts: calls }] })
  return callIdsOf(withAcceptedNames(given, 'messages', { hasShortIds: false }).conversation)
}

test.each<[string, (size: number) => string, (size: number) => number]>([
  ['for many calls of it', () => 'x', (size) => size],
  ['for one call of it, which is long', (size) => 'x'.repeat(200 * size), () => 1],
])(
  'ids are replaced in linear time if the client uses their replacements too: %s',
  async (_, idOf, callsOf) => {
    const ids = (size: number): string[] => {
      const id = idOf(size)
      const taken = sentIds(Array.from({ length: size }, () => id))
      return [...taken, ...Array.from({ length: callsOf(size) }, () => id)]
    }
    expect(new Set(sentIds(ids(9))).size).toBe(ids(9).length)
    expect(await growthOf(50, ids, sentIds)).toBeLessThan(LINEAR_GROWTH)
  },
)
