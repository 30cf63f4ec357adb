import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'
import { type OwnPostgres, startOwnPostgres, withoutCrashes } from './own-postgres.ts'

const NOT_YET = 'nothing yet'

describe.skipIf(withoutCrashes('the PostgreSQL server of a test’s own'))(
  'a PostgreSQL server for one test',
  () => {
    let postgres: OwnPostgres
    let proxy: FaultProxy
    beforeAll(async () => {
      postgres = await startOwnPostgres()
      proxy = await startFaultProxy(postgres.port)
    })
    afterAll(async () => {
      await proxy?.stop()
      await postgres?.stop()
    })

    test('a PostgreSQL server for one test keeps committed data when it crashes, as after a power failure', async () => {
      await postgres.sql('create table kept (n bigint)')
      await postgres.sql('insert into kept values (7)')
      await postgres.crash()
      await expect(postgres.sql('select 1')).rejects.toThrow('ECONNREFUSED')
      await postgres.start()
      expect(await postgres.sql('select n from kept')).toEqual([{ n: 7 }])
    })

    test('a PostgreSQL server for one test does not answer while it is paused', async () => {
      await postgres.pause()
      const asked = postgres.sql('select 1 as one')
      expect(await Promise.race([asked, sleep(200, NOT_YET)])).toBe(NOT_YET)
      await postgres.resume()
      expect(await asked).toEqual([{ one: 1 }])
    })

    test('a PostgreSQL server for one test is unreachable while disconnected, also for open connections', async () => {
      const client = new Client({
        connectionString: postgres.url.replace(String(postgres.port), String(proxy.port)),
      })
      await client.connect()
      proxy.disconnect()
      const asked = client.query('select 1 as one').then(({ rows }) => rows)
      expect(await Promise.race([asked, sleep(200, NOT_YET)])).toBe(NOT_YET)
      proxy.reconnect()
      expect(await asked).toEqual([{ one: 1 }])
      await client.end()
    })
  },
)
