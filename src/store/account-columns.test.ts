import { Client } from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { BANKS, bankFixture } from '../../test/ledger/bank-fixture.ts'

const GIVEN = `UPDATE tokens SET operator_terms = '{"rateLimit":{}}' WHERE id = 1`

test.each(BANKS)(
  "all nodes are notified when an operator's limit is set on a token: $name",
  async (engine) => {
    const { database } = await bankFixture(engine)
    const client = new Client({ connectionString: database.place })
    await client.connect()
    onTestFinished(() => client.end())
    const heard: string[] = []
    client.on('notification', ({ payload = '' }) => heard.push(payload))
    await client.query('LISTEN sluice')
    // A database announces nothing before it has a key for signatures.
    await database.sql(`INSERT INTO message_key VALUES (1, '\\x36', '\\x5c') ON CONFLICT DO NOTHING`)
    await database.sql(GIVEN)
    await vi.waitUntil(() => heard.length > 0, { timeout: 60_000 })
    expect(heard[0]).toMatch(/^[0-9a-f]{32} account t:1$/)
  },
)
