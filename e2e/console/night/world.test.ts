import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CACHE_BREAKS } from '../../../src/domain/cache-break.ts'
import { deriveSecrets } from '../../../src/store/secrets.ts'
import { GATEWAY_SECRET } from '../../../test/fixtures/program.ts'
import { makeWorld } from '../world.ts'

const CALLS = 3_000
const AT_MS = Date.UTC(2026, 10, 18, 14)
const NOBODY = 'http://127.0.0.1:9/v1'
const UPSTREAMS = {
  chatUrl: NOBODY,
  messagesUrl: NOBODY,
  responsesUrl: NOBODY,
  geminiUrl: NOBODY,
  bedrockUrl: NOBODY,
  rerankUrl: NOBODY,
  embeddingsUrl: NOBODY,
  mediaUrl: NOBODY,
}

const folders: string[] = []
let file: DatabaseSync

async function worldWith(seed: number): Promise<DatabaseSync> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-world-'))
  folders.push(dataDir)
  await makeWorld({
    dataDir,
    secrets: deriveSecrets(GATEWAY_SECRET),
    upstreams: UPSTREAMS,
    calls: CALLS,
    seed,
    nowMs: AT_MS,
    root: { accessToken: 'root-access-token', key: 'r'.repeat(48) },
  })
  return new DatabaseSync(join(dataDir, 'sluice.db'), { readOnly: true })
}

const valueOf = (db: DatabaseSync, query: string): unknown => Object.values(db.prepare(query).get() ?? {})[0]

beforeAll(async () => {
  file = await worldWith(1)
})
afterAll(() => {
  file?.close()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

test('the rows, sums, balances and budgets of the demo data for browser tests agree', () => {
  const charged = valueOf(file, 'select sum(quota) from usage_log')
  expect(valueOf(file, 'select count(*) from usage_log')).toBe(CALLS)
  for (const kind of [1, 2, 3, 4, 5])
    expect(valueOf(file, `select sum(quota) from usage_sums where kind = ${kind}`), `kind ${kind}`).toBe(
      charged,
    )
  expect(valueOf(file, 'select sum(used_quota) from users')).toBe(charged)
  expect(valueOf(file, 'select sum(used_quota) from tokens')).toBe(charged)
  expect(valueOf(file, 'select sum(failed) from usage_sums where kind = 1')).toBe(
    valueOf(file, "select count(*) from usage_log where reason in ('failed', 'cut')"),
  )
  const month = Date.UTC(2026, 10, 1)
  expect(valueOf(file, "select used from budget_periods where account = 'b:month:2026-11-01:g:sales'")).toBe(
    valueOf(
      file,
      `select sum(quota) from usage_log where group_name = 'sales' and id >= '${month
        .toString(16)
        .padStart(12, '0')
        .replace(/^(.{8})/, '$1-')}'`,
    ),
  )
})

test('the demo data for browser tests have ten channels, fifteen users, failures, tiers and refused calls', () => {
  expect(valueOf(file, 'select count(*) from channels')).toBe(10)
  expect(valueOf(file, 'select count(*) from users')).toBe(15)
  expect(valueOf(file, 'select count(distinct cause) from usage_log')).toBeGreaterThan(5)
  expect(valueOf(file, 'select count(distinct service_tier) from usage_log')).toBeGreaterThan(3)
  expect(valueOf(file, 'select count(distinct code) from usage_refusals')).toBeGreaterThan(4)
  expect(valueOf(file, 'select count(*) from audit_log')).toBeGreaterThan(80)
  expect(
    valueOf(
      file,
      'select count(*) from (select at_ms, lag(at_ms) over (order by id) as before from audit_log) where at_ms < before',
    ),
  ).toBe(0)
})

test('the demo data for browser tests have sessions with cache savings, and cache breaks of every possible reason', () => {
  expect(valueOf(file, "select count(distinct session) from usage_log where session <> ''")).toBeGreaterThan(
    30,
  )
  expect(valueOf(file, "select count(distinct cache_break) from usage_log where cache_break <> ''")).toBe(
    CACHE_BREAKS.length,
  )
  for (const column of ['cache_saved', 'cache_surcharge'])
    expect(valueOf(file, `select sum(${column}) from usage_sums where kind = 1`), column).toBe(
      valueOf(file, `select sum(${column}) from usage_log`),
    )
  expect(valueOf(file, 'select count(*) from usage_log where cache_saved > 0')).toBeGreaterThan(500)
  expect(valueOf(file, "select count(*) from usage_log where cache_verdict <> ''")).toBeGreaterThan(0)
})

test('the same seed makes the same demo data for browser tests, another seed other data', async () => {
  const all = "select group_concat(id || quota || cause, ' ') from usage_log"
  using again = await worldWith(1)
  expect(valueOf(again, all)).toBe(valueOf(file, all))
  using other = await worldWith(2)
  expect(valueOf(other, all)).not.toBe(valueOf(file, all))
})
