import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chatLine } from '../fixtures/batches.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { local_batches: true },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

describe('docs/batches.md, with official clients', () => {
  test("OpenAI's client uploads lines, makes a batch of them and reads its results", async () => {
    const client = new OpenAI({ baseURL: `${fixture.gateway.url}/v1`, apiKey: 'sk-ann', maxRetries: 0 })
    const text = ['a', 'b'].map((id) => JSON.stringify(chatLine(id))).join('\n')
    const file = await client.files.create({
      file: await toFile(Buffer.from(text), 'lines.jsonl'),
      purpose: 'batch',
    })
    const made = await client.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    })
    await expect.poll(async () => (await client.batches.retrieve(made.id)).status).toBe('completed')
    const batch = await client.batches.retrieve(made.id)
    const content = await (await client.files.content(String(batch.output_file_id))).text()
    expect(content.trim().split('\n')).toHaveLength(2)
    expect((await client.batches.list()).data.map(({ id }) => id)).toEqual([made.id])
    await expect(client.batches.cancel(made.id)).rejects.toMatchObject({ status: 400 })
    expect((await client.files.delete(file.id)).deleted).toBe(true)
  })

  test("Anthropic's client makes a message batch, reads its results and deletes it", async () => {
    const client = new Anthropic({ baseURL: fixture.gateway.url, apiKey: 'sk-ann', maxRetries: 0 })
    const { batches } = client.messages
    const params = { model: 'm', max_tokens: 20, messages: [{ role: 'user' as const, content: 'hi' }] }
    const made = await batches.create({
      requests: [
        { custom_id: 'a', params },
        { custom_id: 'b', params },
      ],
    })
    await expect.poll(async () => (await batches.retrieve(made.id)).processing_status).toBe('ended')
    const results: string[] = []
    for await (const { custom_id, result } of await batches.results(made.id))
      results.push(`${custom_id} ${result.type}`)
    expect(results).toEqual(['a succeeded', 'b succeeded'])
    const listed: string[] = []
    for await (const { id } of batches.list()) listed.push(id)
    expect(listed).toEqual([made.id])
    expect(await batches.delete(made.id)).toEqual({ id: made.id, type: 'message_batch_deleted' })
  })
})
