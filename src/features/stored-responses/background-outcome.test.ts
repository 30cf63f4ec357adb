import { NO_USAGE } from '@sluice/wire/usage'
import { expect, test } from 'vitest'
import { chargedUsage } from './background-outcome.ts'

const PROMPT = { ...NO_USAGE, input: 50 }

test.each([
  ['completed', PROMPT, 7, 0, { input: 9, output: 7 }, 'estimated'],
  ['completed', PROMPT, 0, 0, { input: 50, output: 0 }, 'complete'],
  ['completed', { ...PROMPT, outputIsUnknown: true }, 7, 0, { input: 50, output: 7 }, 'estimated'],
  ['cancelled', PROMPT, 0, 8, { input: 50, output: 8 }, 'client_gone'],
  ['cancelled', { ...PROMPT, outputIsUnknown: true }, 7, 8, { input: 50, output: 8 }, 'client_gone'],
  ['cancelled', NO_USAGE, 0, 8, { input: 9, output: 8 }, 'client_gone'],
  ['failed', PROMPT, 7, 0, { input: 50, output: 7 }, 'cut'],
  ['failed', NO_USAGE, 7, 0, { input: 0, output: 0 }, 'failed'],
] as const)(
  'a background response that is %s with the usage %o, %i counted and %i streamed tokens is charged for %o, as %s',
  (status, usage, counted, streamed, tokens, reason) => {
    const charged = chargedUsage({ status, usage, counted, tools: [] }, 9, streamed)
    expect(charged).toEqual({ usage: { ...NO_USAGE, ...tokens }, reason })
  },
)
