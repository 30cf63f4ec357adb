import { Agent } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { auditBudgets, type BudgetRow, type BudgetUsage } from '../fixtures/budget-audit.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import type { RunningGateway } from '../fixtures/gateway.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { SHARED, setNodes } from './fixture.ts'
import { byTier } from '../runner/tier.ts'

/** Five output tokens at four units each; the prompt is free, so that a hold is as much as the charge. */
const COST = 20
const CALLS = byTier(200, 1_000)
const AFFORDABLE = 100
const BUDGET = COST * AFFORDABLE

const configure = (upstream: ScriptedUpstream): Configuration => ({
  models: priced(['m'], { input: 0, output: 8 }),
  channels: [channel('m', upstream.baseUrl('m'))],
  users: [ROOT, user(2, 'ann', [token('one'), token('two')], { budget: BUDGET, budget_period: 'month' })],
})

/** Gateways on one database, whose accounts and log can be read. */
interface Site {
  readonly upstream: ScriptedUpstream
  readonly gateways: readonly RunningGateway[]
  readonly accounts: () => Promise<readonly BudgetRow[]>
  readonly usage: () => Promise<readonly BudgetUsage[]>
}

async function onSqlite(): Promise<Site> {
  const fixture = await startFixture(configure)
  onTestFinished(() => fixture.close())
  const { upstream, gateway } = fixture
  const file = databaseOf(gateway.dataDir)
  return {
    upstream,
    gateways: [gateway],
    accounts: async () => file.budgets(),
    usage: async () => file.usage(),
  }
}

const SITES: readonly (readonly [string, () => Promise<Site>])[] = [
  ['one node on SQLite', onSqlite],
  ...SHARED.flatMap((engine) =>
    [1, 3].map(
      (count) =>
        [
          `${count === 1 ? 'one node' : `${count} nodes`} on ${engine.name}`,
          async (): Promise<Site> => {
            const { upstream, gateways, database } = await setNodes(engine, count, configure, {
              program: patientProgram,
            })
            const rows = async <Row>(sql: string): Promise<readonly Row[]> =>
              (await database.sql(sql)) as unknown as Row[]
            return {
              upstream,
              gateways,
              accounts: () => rows('select * from budget_periods'),
              usage: () => rows('select * from usage_log'),
            }
          },
        ] as const,
    ),
  ),
]

describe.each(SITES)('at %s', (_, start) => {
  test(`${CALLS} simultaneous calls with a budget for ${AFFORDABLE} spend exactly that budget, even if a node is killed`, async () => {
    const { upstream, gateways, accounts, usage } = await start()
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const agent = new Agent({ keepAlive: true, maxSockets: CALLS })
    onTestFinished(() => agent.destroy())
    const counts = new Map<number, number>()
    const one = async (n: number): Promise<FullResponse> => {
      for (;;) {
        const { url } = gateways[n % gateways.length] as RunningGateway
        const answer = await call(url, ask('m', { max_tokens: 5 }), {
          key: n % 2 === 0 ? 'one' : 'two',
          agent,
        })
        // A busy gateway or database responds with 503, and clients try again.
        if (answer.status === 503) continue
        // So does a call that waited too long for others.
        if (answer.status === 429) continue
        if (answer.status === 403) expect(answer.json().error.code).toBe('budget_exceeded')
        counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1)
        return answer
      }
    }
    await Promise.all(Array.from({ length: CALLS }, (__, n) => one(n)))
    // On a busy machine a node may return its unused lease too late for one call; the next call gets it.
    for (let n = 0; (counts.get(200) ?? 0) < AFFORDABLE; n += 1) await one(n)
    expect(new Set(counts.keys())).toEqual(new Set([200, 403]))
    expect(counts.get(200)).toBe(AFFORDABLE)
    expect(upstream.received('m')).toHaveLength(AFFORDABLE)
    await Promise.all(gateways.map((gateway) => gateway.kill()))
    await Promise.all(gateways.map((gateway) => gateway.restart()))
    for (const [n] of gateways.entries()) expect((await one(n)).status).toBe(403)
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    const spent = await accounts()
    expect(spent.map(({ amount, used }) => ({ amount, used }))).toEqual([{ amount: BUDGET, used: BUDGET }])
    expect(auditBudgets(spent, await usage())).toEqual([])
  })
})
