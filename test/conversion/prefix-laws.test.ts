import { randomInt } from 'node:crypto'
import type { ClientProtocol } from '@sluice/wire/protocols'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Conversation, Turn } from '@sluice/wire/conversation'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { scanObject } from '@sluice/wire/json/json-scan'
import { geminiRequests } from '../generators/gemini-requests.ts'
import { chatRequests, messagesRequests } from '../generators/requests.ts'
import { responsesRequests } from '../generators/responses-requests.ts'
import { ALL_CODECS, ALL_PROTOCOLS, requestAs } from './convert-through.ts'
import { byTier, lawRuns } from '../runner/tier.ts'

/** Requests for one choice: most dialects refuse several. */
const oneChoice = (): fc.Arbitrary<string> =>
  chatRequests().map((text) => {
    const scan = scanObject(Buffer.from(text))
    return applyEdits(scan.bytes, scan, { remove: ['n'], replace: new Map() }).toString()
  })

const REQUESTS = {
  chat: oneChoice,
  messages: messagesRequests,
  responses: responsesRequests,
  gemini: geminiRequests,
} as const

/** An earlier cache mark may live longer because of a later one, so that marks are not compared. */
const NO_MARKS = { hasMarks: false }

/** The member of a request that contains the history. */
const HISTORY = { chat: 'messages', messages: 'messages', responses: 'input', gemini: 'contents' } as const

/** The number of histories that are compared, of each pair of dialects. */
const COMPARISONS = byTier(5, 50)

/** Members of a request that are before its history in the prompt. */
const FRONT = ['system', 'instructions', 'systemInstruction', 'tools'] as const

const PAIRS = ALL_PROTOCOLS.flatMap((from) =>
  ALL_PROTOCOLS.filter((to) => to !== from).map((to) => ({ from, to })),
)

/** The request with only the first `count` elements of its history. */
function cut(from: ClientProtocol, text: string, count: number): string {
  const scan = scanObject(Buffer.from(text))
  const node = scan.span(HISTORY[from])?.node ?? 0
  const elements = scan.elements(node).slice(0, count)
  const history = `[${elements.map((element) => scan.textOf(element)).join(',')}]`
  return applyEdits(scan.bytes, scan, { remove: [], replace: new Map([[HISTORY[from], history]]) }).toString()
}

function lengthOf(from: ClientProtocol, text: string): number {
  const history: unknown = JSON.parse(text)[HISTORY[from]]
  return Array.isArray(history) ? history.length : 0
}

function decoded(from: ClientProtocol, text: string): Conversation | undefined {
  try {
    return ALL_CODECS[from].decodeRequest(scanObject(Buffer.from(text)), new Set())
  } catch {
    return undefined
  }
}

/** Whether a turn has content in every dialect. */
function saysSomething({ parts }: Turn): boolean {
  return parts.some((part) => part.kind === 'tool-call' || (part.kind === 'text' && part.text.trim() !== ''))
}

/**
 * Whether the longer history only continues the shorter one: both end with the user, the assistant speaks
 * next, and nothing is added to the user's last text, the instructions or the tools.
 */
function goesOn(shorter: Conversation, longer: Conversation): boolean {
  const count = shorter.turns.length
  const next = longer.turns[count]
  return (
    shorter.turns.at(-1)?.role === 'user' &&
    longer.turns.at(-1)?.role === 'user' &&
    next?.role === 'assistant' &&
    saysSomething(next) &&
    JSON.stringify(longer.turns[count - 1]) === JSON.stringify(shorter.turns.at(-1)) &&
    JSON.stringify([longer.system, longer.tools]) === JSON.stringify([shorter.system, shorter.tools])
  )
}

/** The prompt of a converted request up to the position of a further turn; undefined if it was refused. */
function promptIn(to: ClientProtocol, converted: string): { front: string; history: string } | undefined {
  const outer = scanObject(Buffer.from(converted))
  const node = outer.span('request')?.node
  if (node === undefined) return undefined
  const scan = scanObject(Buffer.from(outer.textOf(node)))
  const textOf = (member: string): string => {
    const found = scan.span(member)
    return found ? scan.textOf(found.node) : ''
  }
  return { front: FRONT.map(textOf).join('\n'), history: textOf(HISTORY[to]).slice(0, -1) }
}

describe.each(PAIRS)('a history of $from as one of $to', ({ from, to }) => {
  test('the converted history of a continued conversation begins with the bytes of its earlier converted history', () => {
    const { seed = randomInt(2 ** 30) } = fc.readConfigureGlobal()
    const compare = (round: number): number => {
      let compared = 0
      fc.assert(
        fc.property(REQUESTS[from](), (text) => {
          const whole = decoded(from, text)
          const longer = promptIn(to, requestAs(from, to, Buffer.from(text), undefined, NO_MARKS))
          if (!whole || !longer) return
          for (let count = 1; count < lengthOf(from, text); count++) {
            const part = cut(from, text, count)
            const before = decoded(from, part)
            if (!before || !goesOn(before, whole)) continue
            const shorter = promptIn(to, requestAs(from, to, Buffer.from(part), undefined, NO_MARKS))
            if (!shorter) continue
            compared++
            expect(longer.front).toBe(shorter.front)
            expect(longer.history.slice(0, shorter.history.length)).toBe(shorter.history)
          }
        }),
        { numRuns: lawRuns(300), seed: seed + round },
      )
      return compared
    }
    // Few requests can be cut in this way, so that more are tried until enough can.
    let compared = 0
    for (let round = 0; round < 400 && compared < COMPARISONS; round++) compared += compare(round)
    expect(compared).toBeGreaterThanOrEqual(COMPARISONS)
  })
})
