import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Fields, asFields } from '../fields.ts'
import { type Simulator, startSimulator } from '../start-simulator.ts'

let simulator: Simulator
let client: Anthropic
let nowMs = Date.now()
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }, { now: () => nowMs })
  client = new Anthropic({ baseURL: new URL(simulator.messagesUrl).origin, apiKey: 'key', maxRetries: 0 })
})
afterAll(() => simulator.close())
beforeEach(() => simulate({ reset: true }))

async function simulate(settings: Fields): Promise<void> {
  const url = new URL('/simulate', simulator.messagesUrl)
  const { status } = await fetch(url, { method: 'POST', body: JSON.stringify(settings) })
  expect(status).toBe(200)
}

function made(contents: Readonly<Record<string, string>>): Promise<Anthropic.Messages.MessageBatch> {
  const requests = Object.entries(contents).map(([id, content]) => ({
    custom_id: id,
    params: { model: 'demo-claude', max_tokens: 10, messages: [{ role: 'user' as const, content }] },
  }))
  return client.messages.batches.create({ requests })
}

async function ended(id: string): Promise<Anthropic.Messages.MessageBatch> {
  const { batches } = client.messages
  await expect
    .poll(async () => {
      // A batch begins when its lines were read, which may be later than the last step of the clock.
      nowMs += 1_000
      return (await batches.retrieve(id)).processing_status
    })
    .toBe('ended')
  return batches.retrieve(id)
}

async function resultsOf(id: string): Promise<Anthropic.Messages.MessageBatchIndividualResponse[]> {
  const found: Anthropic.Messages.MessageBatchIndividualResponse[] = []
  for await (const result of await client.messages.batches.results(id)) found.push(result)
  return found
}

describe('the README of the simulator: Batches, with the client of Anthropic', () => {
  test('a batch is answered, has results at the tier of batches, and is billed by the request', async () => {
    const batch = await made({ a: 'Hello', b: 'simulate(status=529)' })
    expect(batch).toMatchObject({ processing_status: 'in_progress', results_url: null })
    expect(await ended(batch.id)).toMatchObject({
      request_counts: { processing: 0, succeeded: 1, errored: 1, canceled: 0, expired: 0 },
      results_url: `${simulator.messagesUrl}/messages/batches/${batch.id}/results`,
    })
    const [a, b] = await resultsOf(batch.id)
    expect(a).toMatchObject({
      custom_id: 'a',
      result: { type: 'succeeded', message: { usage: { service_tier: 'batch' } } },
    })
    expect(b).toMatchObject({
      custom_id: 'b',
      result: { type: 'errored', error: { type: 'error', error: { type: 'overloaded_error' } } },
    })
    const invoice = await fetch(new URL(`/simulate/invoice/${batch.id}`, simulator.messagesUrl))
    const usage = a?.result.type === 'succeeded' ? a.result.message.usage : undefined
    expect(await invoice.json()).toMatchObject({
      billed_lines: 1,
      items: [{ custom_id: 'a', output: usage?.output_tokens, tier: 'batch' }],
    })
  })

  test('a batch is canceled while it runs, and deleted once it has ended', async () => {
    await simulate({ behaviour: { running_ms: 1_000, cancelling_ms: 1_000, done: 1 } })
    const { batches } = client.messages
    const batch = await made({ a: 'Hello', b: 'Hello' })
    await expect(batches.delete(batch.id)).rejects.toMatchObject({ status: 400 })
    await expect(batches.results(batch.id)).rejects.toThrow()
    await expect
      .poll(async () => {
        nowMs += 400
        return (await batches.cancel(batch.id)).processing_status
      })
      .toBe('canceling')
    nowMs += 10_000
    const { request_counts: counts } = await ended(batch.id)
    expect(counts.succeeded + counts.canceled).toBe(2)
    expect(counts.canceled).toBeGreaterThan(0)
    expect((await resultsOf(batch.id)).map(({ result }) => result.type)).toContain('canceled')
    expect((await batches.delete(batch.id)).type).toBe('message_batch_deleted')
    await expect(batches.retrieve(batch.id)).rejects.toMatchObject({ status: 404 })
  })

  test('batches that expire have results for what was done', async () => {
    const batch = await made({ a: 'Hello', b: 'simulate(batch_end=expired, batch_done=1)' })
    await ended(batch.id)
    expect((await resultsOf(batch.id)).map(({ result }) => result.type)).toEqual(['succeeded', 'expired'])
  })

  test('a list has pages', async () => {
    const other = new Anthropic({ baseURL: client.baseURL, apiKey: 'lister', maxRetries: 0 })
    const params = {
      model: 'demo-claude',
      max_tokens: 10,
      messages: [{ role: 'user' as const, content: 'Hello' }],
    }
    const ids: string[] = []
    for (let count = 0; count < 3; count += 1)
      ids.push((await other.messages.batches.create({ requests: [{ custom_id: 'a', params }] })).id)
    const listed: string[] = []
    for await (const { id } of other.messages.batches.list({ limit: 2 })) listed.push(id)
    expect(listed).toEqual(ids.toReversed())
    const before = await other.messages.batches.list({ before_id: String(ids[0]), limit: 1 })
    expect(before.data.map(({ id }) => id)).toEqual([ids[1]])
  })

  test.each([
    ['no requests', { requests: [] }],
    ['an id that is used twice', { requests: [{ custom_id: 'a' }, { custom_id: 'a' }] }],
    ['an id with other characters', { requests: [{ custom_id: 'a b' }] }],
  ])('a body with %s is refused', async (_, body) => {
    const answer = await fetch(`${simulator.messagesUrl}/messages/batches`, {
      method: 'POST',
      headers: { 'x-api-key': 'key' },
      body: JSON.stringify(body),
    })
    expect(answer.status).toBe(400)
    expect(asFields(await answer.json())).toMatchObject({ error: { type: 'invalid_request_error' } })
  })
})
