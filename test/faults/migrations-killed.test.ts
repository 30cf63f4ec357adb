import { describe, test } from 'vitest'
import { killMigrations } from '../killed-migration.ts'
import { ENGINES } from '../store-engines.ts'

describe.each(ENGINES)('a migration on $name', (engine) => {
  test('killed at any moment leaves all of the schema or nothing of it, and the next start completes it', async () => {
    // At night there are fifty.
    await killMigrations(engine, 6)
  })
})
