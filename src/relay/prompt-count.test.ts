import { expect, test } from 'vitest'
import { PromptCount } from './prompt-count.ts'

const NEVER = 2 ** 30

test('the count is used when it is made in time', async () => {
  const count = new PromptCount({ expectedPrompt: 5, countPrompt: async () => 12 }, NEVER)
  expect(count.isPending).toBe(true)
  await count.ready()
  expect(count).toMatchObject({ tokens: 12, isPending: false })
})

test('the expected tokens are used where the count is late, and do not change afterwards', async () => {
  const { promise, resolve } = Promise.withResolvers<number>()
  const count = new PromptCount({ expectedPrompt: 5, countPrompt: () => promise }, 0)
  await count.ready()
  expect(count).toMatchObject({ tokens: 5, isPending: false })
  resolve(12)
  await new Promise(setImmediate)
  expect(count.tokens).toBe(5)
})

test('the expected tokens are used where the count fails', async () => {
  const failing = (): Promise<number> => Promise.reject(new Error('no'))
  const count = new PromptCount({ expectedPrompt: 5, countPrompt: failing }, NEVER)
  await count.ready()
  expect(count).toMatchObject({ tokens: 5, isPending: false })
})

test('nothing is counted before the call is sent, which is in the same turn', async () => {
  let counted = 0
  const count = new PromptCount({ expectedPrompt: 5, countPrompt: async () => ++counted }, NEVER)
  expect(counted).toBe(0)
  await count.ready()
  expect(counted).toBe(1)
})
