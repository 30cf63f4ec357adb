import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { STEPS } from '../../src/store/migrations/steps.ts'
import { SECRET, sluice } from '../fixtures/command.ts'
import { ENGINES } from '../stores/engines.ts'

function dataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-schema-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

test('sluice schema brings the schema up to date, and a second run changes nothing', async () => {
  const environment = { DATA_DIR: dataFolder(), GATEWAY_SECRET: SECRET }
  await sluice(['user', 'create', 'ann'], environment)
  for (let run = 0; run < 2; run += 1)
    expect(await sluice(['schema'], environment)).toMatchObject({
      code: 0,
      out: `The schema is up to date (${STEPS.at(-1)?.name}).\n`,
      err: '',
    })
})

test('sluice schema fails for a database of a newer version, and for an unreachable one', async () => {
  const folder = dataFolder()
  const environment = { DATA_DIR: folder, GATEWAY_SECRET: SECRET }
  await sluice(['user', 'create', 'ann'], environment)
  const database = new DatabaseSync(join(folder, 'sluice.db'))
  database.exec("INSERT INTO kysely_migration VALUES ('9001-later', '2027-01-01T00:00:00.000Z')")
  database.close()
  const newer = await sluice(['schema'], environment)
  expect(newer).toMatchObject({ code: 1, out: '', err: expect.stringContaining('newer version of sluice') })
  const away = await sluice(['schema'], {
    ...environment,
    DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none',
  })
  expect(away).toMatchObject({ code: 1, out: '' })
})

test.each(ENGINES)(
  'on $name, a command that reads makes no schema in an empty database, and sluice schema makes it',
  async (engine) => {
    const { place, sql } = await engine.database()
    const isShared = place.startsWith('postgres')
    const steps = async () => sql('SELECT name FROM kysely_migration')
    // The file is there, and empty.
    await sql('SELECT 1')
    const environment = {
      DATA_DIR: dataFolder(),
      GATEWAY_SECRET: SECRET,
      DATABASE_URL: isShared ? place : `sqlite:${place}`,
    }
    for (const command of ['logs', 'user list', 'secret change'])
      expect(
        await sluice(command.split(' '), { ...environment, GATEWAY_SECRET_NEW: `another-${SECRET}` }),
      ).toMatchObject({ code: 1, out: '', err: expect.stringContaining('there is no database of a gateway') })
    await expect(steps()).rejects.toThrow('kysely_migration')
    expect(await sluice(['schema'], environment)).toMatchObject({ code: 0 })
    expect(await steps()).toHaveLength(STEPS.length)
  },
)
