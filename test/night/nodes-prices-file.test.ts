import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, type Configuration, ROOT, token } from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { SHARED, setNodes } from '../nodes/fixture.ts'

const ADMIN = { id: 1, accessToken: ROOT.access_token }
const SOON = { timeout: 60_000, interval: 100 }
/** The charge of a call, where a unit costs a quota unit for input and four for output. */
const COST = 30

/** A file of prices that costs this many times as much. */
const pricesTimes = (factor: number): string => `m: { input: ${2 * factor}, output: ${8 * factor} }\n`

/** A file that all processes read. */
function pricesFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-prices-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'prices.yaml')
  writeFileSync(file, pricesTimes(1))
  return file
}

const configured =
  (file: string) =>
  (upstream: ScriptedUpstream): Configuration => {
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    return {
      options: { prices_file: file },
      rate_limits: { global: { requests: 0 } },
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [{ ...ROOT, tokens: [token('root')] }],
    }
  }

/** Charge and version of the prices of a call. */
async function rowOf(url: string, id: unknown): Promise<{ quota: number; price_version: string }> {
  return vi.waitFor(async () => {
    const { status, data } = await manage<{ quota: number; price_version: string }>(
      url,
      ADMIN,
      `GET /api/log/${String(id)}`,
    )
    expect(status).toBe(200)
    return data
  }, SOON)
}

test('a change of the prices file is applied by every worker, and a prices file with a mistake is applied by no worker', async () => {
  const file = pricesFile()
  const fixture = await startFixture(configured(file), { env: { WORKERS: '2' } })
  onTestFinished(() => fixture.close())
  const { url } = fixture.gateway
  const workerOf = (id: unknown): unknown => {
    const line = fixture.gateway
      .logs()
      .split('\n')
      .find((one) => one.includes(`"${String(id)}"`) && one.includes('"msg":"request"'))
    return line === undefined ? undefined : (JSON.parse(line) as { worker: unknown }).worker
  }
  /** The charges of calls by the workers that made them, until each of two has made some. */
  const charges = async (): Promise<Map<unknown, Set<number>>> => {
    const byWorker = new Map<unknown, Set<number>>()
    for (let calls = 0; calls < 200 && (calls < 20 || byWorker.size < 2); calls += 1) {
      const { status, headers } = await fixture.chat('root', ask('m'))
      expect(status).toBe(200)
      const id = headers['x-request-id']
      const worker = await vi.waitFor(() => {
        const found = workerOf(id)
        expect(found).toBeDefined()
        return found
      }, SOON)
      byWorker.set(worker, (byWorker.get(worker) ?? new Set()).add((await rowOf(url, id)).quota))
    }
    expect(byWorker.size).toBe(2)
    return byWorker
  }
  const everywhere = (factor: number) =>
    vi.waitFor(
      async () => {
        for (const quotas of (await charges()).values()) expect([...quotas]).toEqual([COST * factor])
      },
      { timeout: 60_000, interval: 200 },
    )
  await everywhere(1)
  writeFileSync(file, pricesTimes(3))
  await everywhere(3)
  writeFileSync(file, 'm: { input: 1 }\n')
  await vi.waitFor(() => expect(fixture.gateway.logs()).toContain('m.output: expected a price'), SOON)
  await everywhere(3)
  writeFileSync(file, pricesTimes(5))
  await everywhere(5)
})

describe.each(SHARED)('two nodes on $name', (engine) => {
  test('two nodes that read the same prices file apply its change with the same price version', async () => {
    const file = pricesFile()
    const { gateways, chat } = await setNodes(engine, 2, configured(file))
    const versions = new Set<string>()
    for (const factor of [1, 4]) {
      if (factor > 1) writeFileSync(file, pricesTimes(factor))
      const rows = await Promise.all(
        gateways.map(({ url }, node) =>
          vi.waitFor(async () => {
            const { status, headers } = await chat(node, 'root', ask('m'))
            expect(status).toBe(200)
            const row = await rowOf(url, headers['x-request-id'])
            expect(row.quota).toBe(COST * factor)
            return row
          }, SOON),
        ),
      )
      expect(new Set(rows.map(({ price_version: version }) => version)).size).toBe(1)
      for (const { price_version: version } of rows) versions.add(version)
    }
    expect(versions.size).toBe(2)
  })
})
