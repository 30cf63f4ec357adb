import { describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { type Nodes, setNodes, SHARED } from './fixture.ts'

const MOST = 2 ** 20
const NODES = [0, 1, 2]
/** The size of one response that a node keeps; its row counts 512 more, and encryption adds a third. */
const BYTES = 60_000
const ROW = 90_000

describe.each(SHARED)('three nodes on $name that keep responses of one user', (engine) => {
  async function keep({ gateways }: Nodes, node: number, key: string, bytes: number): Promise<string> {
    const body = { model: 'm', input: 'i'.repeat(bytes) }
    const answer = await call(gateways[node]?.url ?? '', body, { key, path: '/v1/responses' })
    expect(answer.status).toBe(200)
    return answer.json().id
  }

  test("a user's kept responses on three nodes together stay within options.keep_bytes: that user's oldest one is deleted first", async () => {
    const nodes = await setNodes(
      engine,
      NODES.length,
      (upstream) => ({
        options: { keep_responses: '1h', keep_bytes: '1MiB' },
        models: priced(['m']),
        channels: [channel('m', upstream.baseUrl('m'))],
        users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
      }),
      { program: patientProgram },
    )
    nodes.upstream.script('m', wholeChat({ text: 'Hello.', usage: usageText(10, 5) }))
    const { sql } = nodes.database
    const kept = (id: number): Promise<Readonly<Record<string, unknown>>[]> =>
      sql(`select key as id, bytes + 512 as bytes from kept where user_id = ${id} order by created_ms`)
    const sumOf = async (id: number): Promise<number> => {
      const [row] = await sql(`select bytes from kept_sums where share = 'user' and user_id = ${id}`)
      return Number(row?.['bytes'] ?? 0)
    }
    const others = [await keep(nodes, 0, 'bob', 400_000), await keep(nodes, 1, 'bob', 300_000)]
    let largest = 0
    const made: string[][] = []
    for (let round = 0; round < 10; round += 1) {
      made.push(await Promise.all(NODES.map((node) => keep(nodes, node, 'ann', BYTES))))
      largest = Math.max(largest, await sumOf(2))
    }
    await expect.poll(() => sumOf(2)).toBeLessThanOrEqual(MOST)
    // Rows that the nodes write at once exist until the oldest are deleted.
    expect(largest).toBeGreaterThan(MOST - 2 * ROW)
    expect(largest).toBeLessThanOrEqual(MOST + 2 * NODES.length * ROW)
    const left = await kept(2)
    expect(left.reduce((sum, { bytes }) => sum + Number(bytes), 0)).toBe(await sumOf(2))
    // No more than the oldest rows were deleted: whole rounds, except the one that the maximum divides.
    expect(await sumOf(2)).toBeGreaterThan(MOST - 2 * ROW)
    const rounds = left.map(({ id }) => made.findIndex((ids) => ids.includes(String(id))))
    const first = Math.min(...rounds)
    for (let round = first + 1; round < 10; round += 1)
      expect(rounds.filter((one) => one === round)).toHaveLength(NODES.length)
    expect(new Set((await kept(3)).map(({ id }) => id))).toEqual(new Set(others))
  })
})
