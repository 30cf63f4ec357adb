import type { ConversionProtocol } from '@sluice/wire/protocols'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { scanObject } from '@sluice/wire/json/json-scan'
import { requestsOf, sessions } from '../generators/sessions.ts'
import { lawRuns } from '../tier.ts'
import { ALL_PROTOCOLS, requestAs } from './convert-through.ts'

/** The member of a request that contains the history, and those that are before it in the prompt. */
const PROMPTS: Readonly<Record<ConversionProtocol, { history: string; front: readonly string[] }>> = {
  chat: { history: 'messages', front: ['tools'] },
  messages: { history: 'messages', front: ['tools', 'system'] },
  responses: { history: 'input', front: ['tools', 'instructions'] },
  gemini: { history: 'contents', front: ['tools', 'systemInstruction'] },
  converse: { history: 'messages', front: ['toolConfig', 'system'] },
}

const UPSTREAMS = [...ALL_PROTOCOLS, 'converse'] as const
/** Names of models with different rules. */
const MODELS = ['gpt-5.6', 'claude-opus-5', 'deepseek-v4', 'mistral-large', 'gemini-2.5-pro', 'acme-1']

const PAIRS = ALL_PROTOCOLS.flatMap((from) =>
  UPSTREAMS.filter((to) => to !== from).map((to) => ({ from, to })),
)

/** The prompt of a request: what comes before the history, and the history without its closing brackets. */
function promptOf(to: ConversionProtocol, converted: string): { front: string[]; history: string } {
  const outer = scanObject(Buffer.from(converted))
  const request = outer.span('request')
  if (!request) throw new Error(`refused: ${converted}`)
  const scan = scanObject(Buffer.from(outer.textOf(request.node)))
  const textOf = (member: string): string => {
    const found = scan.span(member)
    return found ? scan.textOf(found.node) : ''
  }
  const { history, front } = PROMPTS[to]
  return { front: front.map(textOf), history: textOf(history).replace(/[\]}]+$/, '') }
}

describe.each(PAIRS)('the session of a client of $from at a channel of $to', ({ from, to }) => {
  test.each(MODELS)('each request to %s begins with the bytes of the request before', (model) => {
    fc.assert(
      fc.property(sessions, (session) => {
        const prompts = requestsOf(from, session).map((request) =>
          promptOf(to, requestAs(from, to, Buffer.from(request), model)),
        )
        for (const [number, prompt] of prompts.slice(1).entries()) {
          const before = prompts[number]!
          expect(prompt.front).toEqual(before.front)
          expect(prompt.history.slice(0, before.history.length)).toBe(before.history)
        }
      }),
      { numRuns: lawRuns(25) },
    )
  })
})
