import { createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CHAT_COMPARISON_RULES } from '@sluice/wire/chat'
import type { Conversation } from '@sluice/wire/conversation'
import { ConversationDigests, type ConversationComparisonRules } from '@sluice/wire/conversation-digests'
import { CONVERSE_COMPARISON_RULES, converseCodec } from '@sluice/wire/converse'
import { GEMINI_COMPARISON_RULES } from '@sluice/wire/gemini'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { MESSAGES_COMPARISON_RULES } from '@sluice/wire/messages'
import type { ClientProtocol } from '@sluice/wire/protocols'
import { RESPONSES_COMPARISON_RULES } from '@sluice/wire/responses'
import { upstreamOf } from '../samples/conversation.ts'
import { conversations } from '../generators/conversations.ts'
import { geminiRequests } from '../generators/gemini-requests.ts'
import { chatRequests, messagesRequests } from '../generators/requests.ts'
import { responsesRequests } from '../generators/responses-requests.ts'
import { lawRuns } from '../runner/tier.ts'
import { ALL_PROTOCOLS } from './convert-through.ts'

const SCOPE = { key: createSecretKey(Buffer.alloc(32, 7)), seed: { text: '', mark: 0 }, model: 'm' }

const FORMS: Readonly<Record<ClientProtocol, ConversationComparisonRules>> = {
  chat: CHAT_COMPARISON_RULES,
  messages: MESSAGES_COMPARISON_RULES,
  responses: RESPONSES_COMPARISON_RULES,
  gemini: GEMINI_COMPARISON_RULES,
}

const REQUESTS: Readonly<Record<ClientProtocol, () => fc.Arbitrary<string>>> = {
  chat: chatRequests,
  messages: messagesRequests,
  responses: responsesRequests,
  gemini: geminiRequests,
}

const HISTORY = { chat: 'messages', messages: 'messages', responses: 'input', gemini: 'contents' } as const

type Json = Record<string, unknown>

/** A member that may differ from turn to turn. */
const FREE: Readonly<Record<ClientProtocol, Json>> = {
  chat: { temperature: 0.25, prompt_cache_key: 'turn', user: 'somebody' },
  messages: {
    temperature: 0.25,
    metadata: { user_id: 'somebody' },
    max_tokens: 77,
    cache_control: { type: 'ephemeral' },
  },
  responses: { temperature: 0.25, prompt_cache_key: 'turn', client_metadata: { turn: '3' } },
  gemini: { labels: { turn: '3' } },
}

function digestsOf(form: ConversationComparisonRules, request: unknown): ConversationDigests {
  return new ConversationDigests(scanObject(Buffer.from(JSON.stringify(request))), form, SCOPE)
}

function hexAt(digests: ConversationDigests, turn: number): string {
  return digests.digest(turn).toString('hex')
}

function historyOf(protocol: ClientProtocol, request: Json): readonly unknown[] | undefined {
  const history = request[HISTORY[protocol]]
  return Array.isArray(history) && history.length > 0 ? history : undefined
}

/** Requests of a dialect with a list of turns, parsed. */
function parsedRequests(protocol: ClientProtocol): fc.Arbitrary<Json> {
  return REQUESTS[protocol]()
    .map((text) => JSON.parse(text) as Json)
    .filter((request) => historyOf(protocol, request) !== undefined)
}

/** Adds cache directives where a client may, and writes single texts as parts. */
function marked(value: unknown, holder: string, pick: () => boolean): unknown {
  if (holder === 'content' && typeof value === 'string' && pick())
    return [{ type: 'text', text: value, cache_control: { type: 'ephemeral', ttl: '1h' } }]
  if (!Array.isArray(value)) return value
  return value.map((part: unknown) => {
    if (typeof part !== 'object' || part === null) return part
    const { content, ...others } = part as Json
    const inner = content === undefined ? {} : { content: marked(content, 'content', pick) }
    return { ...part, ...others, ...inner, ...(pick() && { cache_control: { type: 'ephemeral' } }) }
  })
}

const DIRECTIVE = 'cache_control'

/** The value with another leaf in place of the one that is counted down to. */
function changed(value: unknown, at: { left: number }): unknown {
  if (Array.isArray(value)) return value.map((one) => changed(one, at))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [key, key === DIRECTIVE ? one : changed(one, at)]),
    )
  if (at.left-- !== 0) return value
  return typeof value === 'string' ? `${value}x` : value === 1 ? 2 : 1
}

function leavesIn(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + leavesIn(one), 0)
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).reduce((sum, [key, one]) => sum + (key === DIRECTIVE ? 0 : leavesIn(one)), 0)
  return 1
}

describe.each(ALL_PROTOCOLS)('conversations of %s', (protocol) => {
  const form = FORMS[protocol]
  const member = HISTORY[protocol]

  test('the digest of a continued conversation at an earlier turn equals that of the conversation that ended with this turn', () => {
    fc.assert(
      fc.property(parsedRequests(protocol), fc.nat(), (request, cut) => {
        const history = historyOf(protocol, request) ?? []
        const count = 1 + (cut % history.length)
        const whole = digestsOf(form, request)
        const earlier = digestsOf(form, { ...request, ...FREE[protocol], [member]: history.slice(0, count) })
        expect(whole.turns).toBe(history.length)
        expect(earlier.turns).toBe(count)
        for (let turn = 1; turn <= count; turn++) expect(hexAt(whole, turn)).toBe(hexAt(earlier, turn))
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('a change in a turn, the system prompt or the tools changes the digests of all turns from there on', () => {
    fc.assert(
      fc.property(parsedRequests(protocol), fc.nat(), fc.nat(), (request, where, leaf) => {
        const history = historyOf(protocol, request) ?? []
        const turn = where % history.length
        const leaves = leavesIn(history[turn])
        if (leaves === 0) return
        const other = history.with(turn, changed(history[turn], { left: leaf % leaves }))
        const one = digestsOf(form, request)
        const another = digestsOf(form, { ...request, [member]: other })
        for (let at = 1; at <= turn; at++) expect(hexAt(another, at)).toBe(hexAt(one, at))
        for (let at = turn + 1; at <= history.length; at++)
          expect(hexAt(another, at)).not.toBe(hexAt(one, at))
        for (const added of [{ instructed: true }, { tools: [{ name: 'other' }] }]) {
          const headed = digestsOf(form, { ...request, ...added })
          expect(hexAt(headed, history.length)).not.toBe(hexAt(one, history.length))
        }
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test("the upper bound of a continued conversation's prompt tokens counts every byte after the turn whose tokens are known", () => {
    fc.assert(
      fc.property(parsedRequests(protocol), (request) => {
        if (/"(?:image|video|file|input_|document|inline)/i.test(JSON.stringify(request))) return
        const size = Buffer.byteLength(JSON.stringify(request))
        const digests = digestsOf(form, request)
        for (let turn = 1; turn <= digests.turns; turn++) {
          const later =
            Buffer.byteLength(JSON.stringify((historyOf(protocol, request) ?? []).slice(turn))) - 2
          const media = JSON.stringify(request).match(/"(?:image|video|file|input_|document|inline)/i)
          if (!media) {
            expect(digests.bound(turn, 100)).toBeGreaterThanOrEqual(100 + later + 8 * (digests.turns - turn))
            expect(digests.bound(turn, 100)).toBeLessThanOrEqual(100 + size + 2_000 + 8 * digests.turns)
          }
        }
      }),
      { numRuns: lawRuns(40) },
    )
  })
})

describe.each(['chat', 'messages'] as const)('cache directives of %s', (protocol) => {
  test('cache directives, and texts written as content parts, do not change the digest of a conversation', () => {
    fc.assert(
      fc.property(parsedRequests(protocol), fc.array(fc.boolean(), { minLength: 1 }), (request, picks) => {
        let at = 0
        const pick = (): boolean => picks[at++ % picks.length] ?? false
        const member = HISTORY[protocol]
        const others: Json = {}
        for (const name of ['system', 'tools'])
          if (request[name]) others[name] = marked(request[name], name, pick)
        const moved = { ...request, ...others, [member]: marked(request[member], member, pick) }
        const form = FORMS[protocol]
        const [one, another] = [digestsOf(form, request), digestsOf(form, moved)]
        for (let turn = 1; turn <= one.turns; turn++) expect(hexAt(another, turn)).toBe(hexAt(one, turn))
        const added = Buffer.byteLength(JSON.stringify(moved)) - Buffer.byteLength(JSON.stringify(request))
        expect(another.bound(one.turns, 5)).toBe(one.bound(one.turns, 5) + added)
      }),
      { numRuns: lawRuns(300) },
    )
  })
})

/** The same conversation without cache directives. */
function withoutMarks(conversation: Conversation): Conversation {
  return JSON.parse(
    JSON.stringify(conversation, (key, value: unknown) => (key === 'cache' ? undefined : value)),
  )
}

test('cache points in a Converse request do not change the digest of its conversation', () => {
  const encoded = (conversation: Conversation): ScannedObject =>
    scanObject(
      converseCodec.encodeRequest(conversation, upstreamOf('anthropic.claude-sonnet-4-5'), new Set()),
    )
  let compared = 0
  fc.assert(
    fc.property(conversations(), (conversation) => {
      const marked = encoded(conversation)
      const plain = encoded(withoutMarks(conversation))
      const [one, another] = [marked, plain].map(
        (scan) => new ConversationDigests(scan, CONVERSE_COMPARISON_RULES, SCOPE),
      )
      if (!one || !another) return
      if (marked.bytes.includes('cachePoint')) compared++
      expect(one.turns).toBe(another.turns)
      for (let turn = 1; turn <= one.turns; turn++) expect(hexAt(one, turn)).toBe(hexAt(another, turn))
    }),
    { numRuns: lawRuns(200) },
  )
  expect(compared).toBeGreaterThan(0)
})
