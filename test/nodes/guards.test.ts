import { describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import {
  ADMIN,
  ADMIN_USER,
  channel,
  type Configuration,
  priced,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import type { RunningGateway } from '../fixtures/gateway.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { ask } from '../fixtures/fixture.ts'
import { SHARED, setNodes } from './fixture.ts'

const CODE = 'code-4711-x'
const SOON = { timeout: 60_000, interval: 20 }

const configure = (upstream: ScriptedUpstream): Configuration => ({
  models: priced(['m']),
  channels: [channel('m', upstream.baseUrl('m'))],
  guards: [
    {
      name: 'swap',
      do: 'replace',
      match: { regex: 'code-[0-9]+-x' },
      where: ['input'],
      tokens: ['token-ann'],
    },
  ],
  users: [ROOT, user(2, 'ann', [token('ann'), token('bea')]), ADMIN_USER],
})

describe.each(SHARED)('guards of nodes on $name', (engine) => {
  test('guards set on one node apply on all nodes, replace a value by the same placeholder on each, and are counted together', async () => {
    const { chat, gateways, upstream } = await setNodes(engine, 2, configure, { program: patientProgram })
    const admin = <Data>(
      node: number,
      request: Parameters<typeof manage>[2],
      body?: Record<string, unknown>,
    ) => manage<Data>((gateways[node] as RunningGateway).url, ADMIN, request, body)
    const say = async (node: number, key: string, content: string): Promise<number> =>
      (await chat(node, key, ask('m', { messages: [{ role: 'user', content }] }))).status

    for (const node of [0, 1]) expect(await say(node, 'ann', CODE)).toBe(200)
    const [here, there] = upstream.received('m').map(({ text }) => /\[\[SWAP_[0-9a-f]{8}\]\]/.exec(text)?.[0])
    expect(here).toBeDefined()
    expect(there).toBe(here)

    const guard = { name: 'added', do: 'block', where: ['input'], match: { words: ['yonder'] } }
    const added = await admin<{ version: string }>(0, 'POST /api/guards', guard)
    expect(added.status).toBe(200)
    expect(await say(0, 'bea', 'over yonder')).toBe(400)
    await expect.poll(() => say(1, 'bea', 'over yonder'), SOON).toBe(400)

    const changed = { ...guard, match: { words: ['hither'] } }
    expect((await admin(1, 'PUT /api/guards', changed)).status).toBe(200)
    expect(await say(1, 'bea', 'over yonder')).toBe(200)
    await expect.poll(() => say(0, 'bea', 'come hither'), SOON).toBe(400)
    expect(await say(0, 'bea', 'over yonder')).toBe(200)
    const stale = await admin<unknown>(0, 'PUT /api/guards', { ...changed, version: added.data.version })
    expect([stale.status, JSON.stringify(stale)]).toEqual([409, expect.stringContaining('changed_meanwhile')])

    const { data: guards } = await admin<{ name: string; version: string }[]>(1, 'GET /api/guards')
    const version = guards.find(({ name }) => name === 'added')?.version
    const both = [0, 1].map((node) =>
      admin(node, 'PUT /api/guards', { ...changed, match: { words: ['hither', `word${node}`] }, version }),
    )
    expect((await Promise.all(both)).map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      200, 409,
    ])

    for (const node of [0, 1]) {
      // A node waits only a second for what the other one has counted.
      const counts = async () => {
        const { data } = await admin<{ name: string; calls: number; matches: number }[]>(
          node,
          'GET /api/guards',
        )
        return data.find(({ name }) => name === 'swap')
      }
      await expect.poll(counts).toMatchObject({ calls: 2, matches: 2 })
    }

    expect((await admin(0, 'DELETE /api/guards/added')).status).toBe(200)
    expect(await say(0, 'bea', 'come hither')).toBe(200)
    await expect.poll(() => say(1, 'bea', 'come hither'), SOON).toBe(200)
  })
})
