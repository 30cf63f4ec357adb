import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from './start-simulator.ts'

let simulator: Simulator
let client: OpenAI
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  client = new OpenAI({ apiKey: 'key', baseURL: simulator.chatUrl, maxRetries: 0 })
})
afterAll(() => simulator.close())

const asked = { model: 'demo-chat', prompt: 'Tell me about lighthouses', max_tokens: 60 }

describe('a completion of a prompt', () => {
  test('a simulated legacy completion is a text about its prompt, with usage', async () => {
    const { object, choices, usage } = await client.completions.create(asked)
    expect(object).toBe('text_completion')
    expect(choices).toMatchObject([
      { index: 0, text: expect.stringContaining('lighthouses'), logprobs: null },
    ])
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0))
  })

  test('a simulated legacy completion has the same text, finish reason and token count as a stream as without streaming', async () => {
    const whole = await client.completions.create(asked)
    const options = { stream_options: { include_usage: true } }
    let text = ''
    let reason: string | undefined
    let used: unknown
    for await (const chunk of await client.completions.create({ ...asked, ...options, stream: true })) {
      text += chunk.choices.map((choice) => choice.text).join('')
      reason = chunk.choices[0]?.finish_reason ?? reason
      used = chunk.usage ?? used
    }
    expect([text, reason]).toEqual([whole.choices[0]?.text, whole.choices[0]?.finish_reason])
    expect(used).toMatchObject({ completion_tokens: whole.usage?.completion_tokens })
  })

  test('a simulated legacy completion ends after sixteen tokens if the request has no maximum', async () => {
    const { max_tokens: _, ...without } = asked
    const { choices, usage } = await client.completions.create(without)
    expect([choices[0]?.finish_reason, usage?.completion_tokens]).toEqual(['length', 16])
  })

  test('a simulated legacy completion ends before a stop sequence', async () => {
    const { choices } = await client.completions.create({ ...asked, stop: 'lighthouses' })
    expect(choices[0]).toMatchObject({
      finish_reason: 'stop',
      text: expect.not.stringContaining('lighthouses'),
    })
  })

  test('a simulated legacy completion with echo repeats its prompt first', async () => {
    const { choices } = await client.completions.create({ ...asked, echo: true })
    expect(choices[0]?.text.startsWith('Tell me about lighthouses')).toBe(true)
  })

  test('a simulated legacy completion is returned n times for each prompt', async () => {
    const { choices, usage } = await client.completions.create({
      ...asked,
      prompt: ['Tell me about lighthouses', 'Tell me about foxes'],
      n: 2,
      max_tokens: 20,
    })
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2, 3])
    expect(choices.map(({ text }) => /fox|lighthouse/.exec(text)?.[0])).toEqual([
      'lighthouse',
      'lighthouse',
      'fox',
      'fox',
    ])
    expect(usage?.completion_tokens).toBe(80)
  })

  test.each([
    ['token ids', [1, 2, 3], 1],
    ['lists of them', [[1, 2], [3]], 2],
  ])('a simulated legacy completion accepts %s', async (_, prompt, count) => {
    const { choices } = await client.completions.create({ ...asked, prompt })
    expect(choices).toHaveLength(count)
  })

  test.each([
    ['no prompt', { prompt: undefined }],
    ['an empty list of prompts', { prompt: [] }],
    ['n of 0', { n: 0 }],
  ])('a completion with %s is refused', async (_, wrong) => {
    const request = client.completions.create({ ...asked, ...(wrong as object) })
    await expect(request).rejects.toMatchObject({ status: 400, type: 'invalid_request_error' })
  })
})
