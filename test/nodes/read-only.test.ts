import { describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { SHARED, setNodes } from './fixture.ts'

/** Ten prompt and five output tokens. */
const COST = 30
const ADMIN = { id: 1, accessToken: ROOT.access_token }
/** Ends the nodes' sessions, which keep the default that applied when they began. */
const CUT =
  'select pg_terminate_backend(pid) from pg_stat_activity ' +
  "where datname = current_database() and application_name like 'sluice%'"

describe.each(SHARED)('a $name that cannot be written', (engine) => {
  test.each<[string, boolean, (name: string) => string, (name: string) => string]>([
    [
      'is read-only',
      false,
      (name) => `alter database ${name} set default_transaction_read_only = on`,
      (name) => `alter database ${name} reset default_transaction_read_only`,
    ],
    [
      'has taken back the rights of the relay',
      true,
      () => 'revoke execute on all functions in schema public from sluice_relay',
      () => 'grant execute on all functions in schema public to sluice_relay',
    ],
  ])(
    'a database that %s is a 503 with retry-after and an alert to operators, and reads continue',
    async (_, mayManage, spoil, mend) => {
      const told = await startAlertReceiver()
      onTestFinished(() => told.stop())
      const {
        chat,
        gateways,
        database,
        token: tokenOf,
        upstream,
      } = await setNodes(
        engine,
        1,
        (to) => ({
          models: priced(['m']),
          channels: [channel('m', to.baseUrl('m'))],
          users: [ROOT, user(2, 'ann', [token('warm'), token('cold')])],
          alerts: [told.declared('storage.failed', 'storage.back')],
        }),
        { program: patientProgram },
      )
      upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
      const url = gateways[0]?.url ?? ''
      const warm = async (): Promise<number> => (await chat(0, 'warm', ask('m', { max_tokens: 100 }))).status
      expect(await warm()).toBe(200)
      const name = new URL(database.place).pathname.slice(1)
      await database.sql(spoil(name))
      await database.sql(CUT)
      const cold = (): ReturnType<typeof chat> => chat(0, 'cold', ask('m', { max_tokens: 100 }))
      // A call on a session that was just cut reports that the database cannot be reached.
      await expect
        .poll(async () => (await cold()).json().error)
        .toMatchObject({ type: 'gateway_error', code: 'storage_unavailable' })
      const refused = await cold()
      expect(refused.status).toBe(503)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
      const created = { username: 'eve', password: 'long enough' }
      const written = await manage(url, ADMIN, 'POST /api/user/', created)
      expect(written.status).toBe(mayManage ? 200 : 503)
      if (!mayManage) expect(Number(written.headers['retry-after'])).toBeGreaterThan(0)
      expect(await manage(url, ADMIN, 'GET /api/user/?p=1')).toMatchObject({ success: true })
      const ready = (): Promise<string> =>
        call(url, undefined, { method: 'GET', path: '/readyz' }).then(({ text }) => text)
      await expect.poll(ready).toBe('not ready: storage\n')
      const isStorageOk = async (): Promise<number> => (await metricsOf(url)).sum('sluice_storage_ok')
      expect(await isStorageOk()).toBe(0)
      await told.atLeast(1)
      expect(told.received[0]).toMatchObject({ type: 'storage.failed', isSigned: true })
      await database.sql(`begin read write; ${mend(name)}; commit`)
      await database.sql(CUT)
      await expect.poll(async () => (await cold()).status).toBe(200)
      await expect.poll(async () => (await tokenOf('token-warm')).used).toBe(COST)
      await expect.poll(ready).toBe('ready\n')
      expect(await isStorageOk()).toBe(1)
      await told.atLeast(2)
      expect(told.received.map(({ type }) => type)).toEqual(['storage.failed', 'storage.back'])
      expect(gateways[0]?.logs().match(/"level":50/g)).toHaveLength(1)
    },
  )
})
