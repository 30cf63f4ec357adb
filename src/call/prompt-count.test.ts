import { expect, test } from 'vitest'
import { PromptCount } from './prompt-count.ts'

const NEVER = 2 ** 30
const plan = { estimate: { promptTokens: 5 } }
const services = { count: { loading: Promise.resolve() } }

test('the counted tokens of a prompt are used if the count is ready in time', async () => {
  const prompt = new PromptCount({ plan, services, countPrompt: async () => 12 }, NEVER)
  expect(prompt.isPending).toBe(true)
  await prompt.ready()
  expect(prompt).toMatchObject({ tokens: 12, isPending: false })
})

test('the estimated tokens of a prompt are used if its token count is late, and do not change afterwards', async () => {
  const { promise, resolve } = Promise.withResolvers<number>()
  const prompt = new PromptCount({ plan, services, countPrompt: () => promise }, 0)
  await prompt.ready()
  expect(prompt).toMatchObject({ tokens: 5, isPending: false })
  resolve(12)
  await new Promise(setImmediate)
  expect(prompt.tokens).toBe(5)
})

test('the estimated tokens of a prompt are used if counting its tokens fails', async () => {
  const failing = (): Promise<number> => Promise.reject(new Error('no'))
  const prompt = new PromptCount({ plan, services, countPrompt: failing }, NEVER)
  await prompt.ready()
  expect(prompt).toMatchObject({ tokens: 5, isPending: false })
})

test('the tokens of a prompt are not counted in the turn of the event loop in which its call is sent', async () => {
  let counted = 0
  const prompt = new PromptCount({ plan, services, countPrompt: async () => ++counted }, NEVER)
  expect(counted).toBe(0)
  await prompt.ready()
  expect(counted).toBe(1)
})

test('the timeout for counting the tokens of a prompt begins when the tokenizer is loaded', async () => {
  const loading = Promise.withResolvers<void>()
  const counted = Promise.withResolvers<number>()
  const prompt = new PromptCount(
    { plan, services: { count: { loading: loading.promise } }, countPrompt: () => counted.promise },
    0,
  )
  const ready = prompt.ready()
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect(prompt.isPending).toBe(true)
  loading.resolve()
  counted.resolve(12)
  await ready
  expect(prompt.tokens).toBe(12)
})
