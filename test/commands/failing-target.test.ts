import { describe, expect, test } from 'vitest'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { type Outcome, sluice } from '../fixtures/command.ts'
import { type Filling, filledFolder, SECRET } from '../stores/filled-store.ts'
import { ENGINES, type TestDatabase } from '../stores/engines.ts'

const FEW: Filling = { users: 2, tokensEach: 1, charges: [100, 250], openHolds: 0 }

/** Makes the database fail at the usage log, after the accounts were copied. */
const failing =
  (statement: string) =>
  async (database: TestDatabase): Promise<() => Promise<unknown>> => {
    await (await database.open(deriveSecrets(SECRET))).close()
    await database.sql(
      `create function fail() returns trigger language plpgsql as 'begin ${statement}; return null; end'`,
    )
    await database.sql('create trigger fail after insert on usage_log execute function fail()')
    return () => database.sql('drop function fail cascade')
  }

describe.each(ENGINES.filter(({ name }) => name === 'PostgreSQL'))('a copy to $name', (engine) => {
  test.each<[string, (database: TestDatabase) => Promise<() => Promise<unknown>>, RegExp]>([
    [
      'ends its sessions',
      failing('perform pg_terminate_backend(pg_backend_pid())'),
      /^sluice: the database (?:cannot be reached|gave up)/,
    ],
    ['is full', failing("raise exception ''no space'' using errcode = ''53100''"), /has no room/],
  ])(
    'sluice migrate to a target that %s in the middle ends with a message, and a second run completes the copy',
    async (_, spoil, sentence) => {
      const folder = await filledFolder(FEW)
      const database = await engine.database()
      const migrate = (): Promise<Outcome> =>
        sluice(['migrate', '--to', database.place, '--json'], { DATA_DIR: folder, GATEWAY_SECRET: SECRET })
      const mend = await spoil(database)
      const failed = await migrate()
      expect([failed.code, failed.out]).toEqual([1, ''])
      expect(failed.err).toMatch(sentence)
      await mend()
      expect(await database.sql('select 1 from usage_log')).toEqual([])
      const done = await migrate()
      expect([done.code, done.err]).toEqual([0, ''])
      expect(done.json()).toMatchObject({ verified: true, differences: [] })
    },
  )

  test('sluice migrate to a read-only database ends with a message, and writes nothing', async () => {
    const folder = await filledFolder(FEW)
    const database = await engine.database()
    await database.sql(
      "do 'begin execute format(''alter database %I set default_transaction_read_only = on'', current_database()); end'",
    )
    const { code, err } = await sluice(['migrate', '--to', database.place], {
      DATA_DIR: folder,
      GATEWAY_SECRET: SECRET,
    })
    expect([code, err]).toEqual([1, expect.stringContaining('read-only transaction')])
    expect(
      await database.sql("select 1 from information_schema.tables where table_schema = 'public'"),
    ).toEqual([])
  })
})
