import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { newToken, newUser, openedStore, SECRETS, temporaryFolder } from '../store-rows.ts'
import { SUM_KINDS } from '../../src/store/sum-kinds.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'

const WRITER = `
  const [open, secrets, usage, path, round] = process.argv.slice(1)
  const { openSqliteStore } = await import(open)
  const { deriveSecrets } = await import(secrets)
  const { NO_USAGE } = await import(usage)
  const store = await openSqliteStore({ path, secrets: deriveSecrets('a secret that only tests know') })
  const { writeSync } = await import('node:fs')
  // Retries, because the pipe may be full.
  const say = (line) => {
    try {
      writeSync(1, line)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
      say(line)
    }
  }
  for (let n = 0; ; n += 8) {
    await Promise.all(Array.from({ length: 8 }, async (_, k) => {
      const id = round + '-' + (n + k)
      await store.write('settle', { id, token_id: 1, user_id: 1, quota: 3, reason: 'complete', delivered: true, ended_ms: 1,
        usage: { ...NO_USAGE, input: 1, output: 1 }, kind: 'chat',
        model: 'm', requested_model: 'm', upstream_model: 'm', channel: 'c', group: 'g', stream: false, price_version: 'v', duration_ms: 1,
        first_byte_ms: null, budgets: '', provenance: { keyTag: 't', reasoning: [],
          response: { id, upstreamId: 'up', tokens: 2, previousId: null } } })
      say(id + '\\n')
    }))
  }
`

test('no acknowledged database write is lost when the process is killed, and balances, sums and log agree', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const first = await openSqliteStore({ path, secrets: SECRETS })
  const user = await first.write('createUser', newUser())
  await first.write('createToken', newToken(user.id))
  await first.close()
  const acknowledged: string[] = []
  for (let round = 0; round < 5; round += 1) {
    const modules = ['src/store/sqlite/open.ts', 'src/store/secrets.ts', 'packages/wire/src/usage.ts'].map(
      (module) => new URL(`../../${module}`, import.meta.url).href,
    )
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', WRITER, ...modules, path, `${round}`],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    let said = ''
    child.stdout.setEncoding('latin1').on('data', (text: string) => {
      said += text
    })
    await once(child.stdout, 'data')
    setTimeout(() => child.kill('SIGKILL'), 30 + 40 * round)
    await once(child, 'close')
    acknowledged.push(...said.split('\n').slice(0, -1))
  }
  const file = new DatabaseSync(path, { readOnly: true })
  const idsIn = (table: string): unknown[] =>
    file
      .prepare(`SELECT id FROM ${table} ORDER BY id`)
      .all()
      .map((row) => row['id'])
  const kept = new Set(idsIn('usage_log'))
  const responses = idsIn('stored_responses')
  file.close()
  expect(acknowledged.length).toBeGreaterThan(40)
  expect(acknowledged.filter((id) => !kept.has(id))).toEqual([])
  expect(responses).toEqual([...kept])
  const store = await openedStore(path, 'own')
  await store.read('usageSumsCoverage')
  const summed = new DatabaseSync(path, { readOnly: true })
  for (const { kind } of SUM_KINDS)
    expect(
      summed
        .prepare(`SELECT sum(quota) AS quota, sum(requests) AS requests FROM usage_sums WHERE kind = ${kind}`)
        .get(),
    ).toEqual({
      quota: 3 * kept.size,
      requests: kept.size,
    })
  summed.close()
  const accounts = await store.read('findUnbalancedAccounts')
  expect(accounts).toMatchObject({ tokens: [], users: [] })
  expect((await store.write('loadAccount', { tokenId: 1 }))?.token.used_quota).toBe(3 * kept.size)
})
