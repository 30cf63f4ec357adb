import OpenAI from 'openai'
import { describe, expect, test, vi } from 'vitest'
import { backgroundConfiguration, CHARGE } from '../fixtures/background-stage.ts'
import { open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { type Nodes, SHARED, sharedNodes } from './fixture.ts'

const KEYS = ['one', 'two'] as const
/** An event with two hundred tokens in any tokenizer. */
const WORDS = `data: ${JSON.stringify({
  type: 'response.output_text.delta',
  sequence_number: 1,
  output_index: 0,
  content_index: 0,
  delta: ' banana'.repeat(200),
})}\n\n`

describe.each(SHARED)('several nodes on $name', (engine) => {
  const shared = sharedNodes(
    engine,
    2,
    (upstream) => {
      const background = backgroundConfiguration(upstream, { m: {}, cancelled: {} })
      return {
        ...background,
        models: { ...background.models, ...priced(['native']) },
        channels: [
          ...(background.channels ?? []),
          channel('native', upstream.baseUrl('native'), { protocol: 'responses', keys: [...KEYS] }),
        ],
        users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
      }
    },
    patientProgram,
  )
  const clientOf = ({ gateways }: Nodes, node: number, key = 'ann'): OpenAI =>
    new OpenAI({ apiKey: `sk-${key}`, baseURL: `${gateways[node]?.url}/v1`, maxRetries: 0 })

  test('a response of a responses channel that one node made can be retrieved at another, with the same upstream key', async () => {
    const { nodes } = shared
    const upstream = storingUpstream('native')
    nodes.upstream.decide('native', (request) => upstream.decision(request))
    let node = 0
    let previous: string | undefined
    for (let turn = 0; turn < 4; turn += 1) {
      const made = await clientOf(nodes, node).responses.create({
        model: 'native',
        input: 'hi',
        ...(previous !== undefined && { previous_response_id: previous }),
      })
      previous = made.id
      node = 1 - node
    }
    expect(new Set(upstream.made.map(({ key }) => key)).size).toBe(1)
    expect(upstream.made.map(({ body }) => body['previous_response_id'])).toEqual([
      undefined,
      ...upstream.made.slice(0, 3).map(({ id }) => id),
    ])
    const id = previous ?? ''
    const own = clientOf(nodes, node).responses
    expect((await own.retrieve(id)).id).toBe(id)
    await expect(clientOf(nodes, node, 'bob').responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
    await own.delete(id)
    await expect(clientOf(nodes, 1 - node).responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })

  test('a converted response that one node keeps can be continued at another node', async () => {
    const { nodes } = shared
    nodes.upstream.script('chat', wholeChat({ text: 'Hello.' }))
    const first = await clientOf(nodes, 0).responses.create({ model: 'chat', input: 'hi' })
    nodes.upstream.script('chat', wholeChat({ text: 'Rain.' }))
    const next = { model: 'chat', input: 'weather?', previous_response_id: first.id }
    const second = await clientOf(nodes, 1).responses.create(next)
    expect(second.output_text).toBe('Rain.')
    expect(JSON.parse(nodes.upstream.only('chat').text).messages).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Hello.' },
      { role: 'user', content: 'weather?' },
    ])
    const refused = clientOf(nodes, 1, 'bob').responses.create(next)
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
    await clientOf(nodes, 0).responses.delete(second.id)
    const gone = clientOf(nodes, 1).responses.retrieve(second.id)
    await expect(gone).rejects.toMatchObject({ status: 404 })
  })

  test('a background response is charged once, whichever nodes learn from the provider that it has ended', async () => {
    const { nodes } = shared
    const provider = storingUpstream('m')
    nodes.upstream.decide('m', (request) => provider.decision(request))
    const one = clientOf(nodes, 0)
    const two = clientOf(nodes, 1)
    const first = await one.responses.create({ model: 'm', input: 'hi' })
    const next = await two.responses.create({ model: 'm', input: 'on', previous_response_id: first.id })
    expect(await one.responses.retrieve(next.id)).toMatchObject({ previous_response_id: first.id })
    nodes.upstream.script('chat', wholeChat({ text: 'Hello.' }))
    const kept = await one.responses.create({ model: 'chat', input: 'hi' })
    await two.responses.create({ model: 'chat', input: 'on', previous_response_id: kept.id })
    const [, said] = nodes.upstream.received('chat').map(({ text }) => JSON.parse(text).messages)
    expect(said).toMatchObject([{ content: 'hi' }, { role: 'assistant' }, { content: 'on' }])
    const { id } = await one.responses.create({ model: 'm', input: 'hi', background: true })
    provider.backgroundStatus = 'completed'
    expect((await two.responses.retrieve(id)).status).toBe('completed')
    await two.responses.delete(id)
    await vi.waitFor(async () => {
      const rows = await nodes.database.sql(`select quota, reason from usage_log where model = 'm'`)
      expect(rows).toEqual(Array.from({ length: 3 }, () => ({ quota: CHARGE, reason: 'complete' })))
    }, 60_000)
    const [sums] = await nodes.database.sql(
      `select used_quota as used, (select sum(quota)::bigint from usage_log) as charged from users where username = 'ann'`,
    )
    expect(sums?.['used']).toBe(sums?.['charged'])
    await expect(one.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })

  test('a background response that is cancelled is charged for what another node has streamed of it', async () => {
    const { nodes } = shared
    const provider = storingUpstream('cancelled')
    nodes.upstream.decide('cancelled', (request) => {
      const decided = provider.decision(request)
      if (decided.kind !== 'stream') return decided
      const [begun = ''] = decided.frames ?? []
      return { kind: 'stream', frames: [begun, WORDS], ending: 'stall' }
    })
    const { id } = await clientOf(nodes, 0).responses.create({
      model: 'cancelled',
      input: 'hi',
      background: true,
    })
    const path = `/v1/responses/${id}?stream=true`
    const live = await open(nodes.gateways[1]?.url ?? '', undefined, { key: 'ann', method: 'GET', path })
    await live.until('banana')
    await clientOf(nodes, 0).responses.cancel(id)
    const [row] = await vi.waitFor(async () => {
      const rows = await nodes.database.sql(`select * from usage_log where model = 'cancelled'`)
      expect(rows).toHaveLength(1)
      return rows
    }, 60_000)
    expect(row).toMatchObject({ reason: 'client_gone', output_tokens: 200 })
    live.abort()
  })
})
