import { describe, test } from 'vitest'
import { killMigrations } from '../killed-migration.ts'
import { ENGINES } from '../store-engines.ts'

const KILLS = 50

describe.each(ENGINES)('migrations on $name', (engine) => {
  test(`${KILLS} killed ones leave the whole schema or none of it`, { timeout: 300_000 }, async () => {
    await killMigrations(engine, KILLS)
  })
})
