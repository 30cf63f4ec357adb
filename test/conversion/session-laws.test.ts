import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { requestsOf, sessions } from '../generators/sessions.ts'
import { lawRuns } from '../tier.ts'
import { ALL_PROTOCOLS, requestAs } from './convert-through.ts'
import { convertedPrompt } from './converted-prompt.ts'

const UPSTREAMS = [...ALL_PROTOCOLS, 'converse'] as const
/** Names of models with different rules. */
const MODELS = ['gpt-5.6', 'claude-opus-5', 'deepseek-v4', 'mistral-large', 'gemini-2.5-pro', 'acme-1']

const PAIRS = ALL_PROTOCOLS.flatMap((from) =>
  UPSTREAMS.filter((to) => to !== from).map((to) => ({ from, to })),
)

describe.each(PAIRS)('the session of a client of $from at a channel of $to', ({ from, to }) => {
  test.each(MODELS)(
    'each converted request of a session to %s begins with the bytes of the previous request',
    (model) => {
      fc.assert(
        fc.property(sessions, (session) => {
          const prompts = requestsOf(from, session).map((request) => {
            const converted = requestAs(from, to, Buffer.from(request), model)
            const prompt = convertedPrompt(to, converted)
            if (!prompt) throw new Error(`refused: ${converted}`)
            return prompt
          })
          for (const [number, prompt] of prompts.slice(1).entries()) {
            const before = prompts[number]!
            expect(prompt.front).toEqual(before.front)
            expect(prompt.history.slice(0, before.history.length)).toBe(before.history)
          }
        }),
        { numRuns: lawRuns(25) },
      )
    },
  )
})
