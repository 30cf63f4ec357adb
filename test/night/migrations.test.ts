import { describe, test } from 'vitest'
import { killMigrations } from '../killed-migration.ts'
import { ENGINES } from '../store-engines.ts'

const KILLS = 50

describe.each(ENGINES)('migrations on $name', (engine) => {
  test(`${KILLS} of them killed leave all of the schema or nothing of it`, { timeout: 300_000 }, async () => {
    await killMigrations(engine, KILLS)
  })
})
