import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BANKS, bankFixture, exactly } from '../../../test/ledger/bank-fixture.ts'
import { nodeFileAt, temporaryFolder } from '../../../test/stores/rows.ts'
import { BankClient } from './bank-client.ts'

describe.each(BANKS)('$name', (engine) => {
  test.each([
    {
      when: 'between its report and its comparison with the bank',
      learns: (client: BankClient) => client.resync(),
    },
    {
      when: 'before it borrows more',
      learns: async (client: BankClient, recall: () => Promise<void>) => {
        await recall()
        await client.acquire(() => exactly(1))
      },
    },
  ])('a node notices that the bank recalls quota that its calls hold $when', async ({ learns }) => {
    const { node, database } = await bankFixture(engine)
    const file = await nodeFileAt(join(temporaryFolder(), 'node.db'))
    onTestFinished(() => file.close())
    let isCalm = true
    const recall = async (): Promise<void> => {
      if (isCalm) return
      isCalm = true
      await database.sql('update tokens set remain_quota = 400000 where id = 1')
    }
    const client = new BankClient({
      bank: node(file.node),
      file,
      openHolds: () => [],
      onReported: recall,
      onReachabilityChange: () => {},
      onUnknownTokens: () => expect.unreachable('every token is known'),
    })
    await client.start()
    onTestFinished(() => client.close())
    const recalled: string[] = []
    client.leases.onRecalled = (account) => recalled.push(account)
    await client.acquire(() => exactly(100))
    for (const account of ['t:1', 'u:1'] as const) client.leases.get(account)?.hold(100)
    await client.resync()
    expect(recalled).toEqual([])
    isCalm = false
    await learns(client, recall)
    expect(recalled).toEqual(['t:1'])
  })
})
